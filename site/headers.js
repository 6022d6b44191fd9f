// Fills the column "For this page" with the header fields of a response to this very page.
// Without scripts, or if the request fails, the column stays away and the page still says everything else.

async function showFields() {
  const response = await fetch(location.href, { method: "HEAD", cache: "no-store" });
  for (const cell of document.querySelectorAll("[data-field]")) {
    cell.textContent = response.headers.get(cell.dataset.field) ?? "";
  }
  document.getElementById("fields-note").textContent =
    "The last column shows what this server answered a moment ago, when this page asked about itself.";
}

showFields().catch(() => {});
