// Examples for a terminal name the address of this server, whatever it is.

for (const place of document.querySelectorAll("[data-address]")) {
  place.textContent = place.textContent.replaceAll(place.dataset.address, location.origin);
}
