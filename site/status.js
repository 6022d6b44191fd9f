// Shows the numbers of the server, fetched every two seconds from status.json.
// If the server does not share them, the page says so once and asks no more.

const INTERVAL_MS = 2000;
const POINTS_MAX = 90;
// A line of fewer points ends before the right edge.
const POINTS_MIN = 12;

const note = document.getElementById("live-note");
const live = document.getElementById("live");
const rates = [];
let before = null;

/** Writes a text to the place of that name. */
function show(name, text) {
  document.querySelector(`[data-status="${name}"]`).textContent = text;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** 1536 becomes "1.5 KiB". */
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${short.format(bytes)} ${units[unit]}`;
}

/** 3725 becomes "1 h 2 min". */
function duration(seconds) {
  const parts = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [Math.floor(seconds) % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/** Draws the rates as a line with water under it. */
function draw() {
  const top = Math.max(...rates, 1);
  const step = 300 / (Math.max(rates.length, POINTS_MIN) - 1);
  const points = rates.map((rate, index) => `${(index * step).toFixed(1)},${(58 - (rate / top) * 54).toFixed(1)}`);
  show("top", short.format(top));
  document.getElementById("rates-line").setAttribute("points", points.join(" "));
  const end = ((rates.length - 1) * step).toFixed(1);
  const area = rates.length > 1 ? `M0,60 L${points.join(" L")} L${end},60 Z` : "";
  document.getElementById("rates-area").setAttribute("d", area);
}

/** How much a counter grew in a second since the last look; nothing after a restart or at the first look. */
function perSecond(now, then, elapsedMs) {
  return then === undefined || now < then || elapsedMs <= 0 ? null : ((now - then) * 1000) / elapsedMs;
}

function showStatus(status, atMs) {
  const { connections, content } = status;
  const elapsedMs = before ? atMs - before.atMs : 0;
  const rate = perSecond(status.requests_total, before?.status.requests_total, elapsedMs);
  const sent = perSecond(status.bytes_sent_total, before?.status.bytes_sent_total, elapsedMs);
  before = { status, atMs };

  show("requests", whole.format(status.requests_total));
  show("rate", rate === null ? "" : `${short.format(rate)} a second`);
  show("sent", size(status.bytes_sent_total));
  show("sent-rate", sent === null ? "" : `${size(sent)} a second`);
  show("open", whole.format(connections.open));
  const stops = connections.accept_stops ? `, accepting paused ${whole.format(connections.accept_stops)} times` : "";
  show("accepted", `${whole.format(connections.accepted)} accepted${stops}`);
  show("uptime", duration(status.uptime_seconds));
  show("engine", `${status.io}, ${status.workers} ${status.workers === 1 ? "worker" : "workers"}`);
  show("files", whole.format(content.files));
  const forms = whole.format(content.encodings);
  show("prepared", `${whole.format(content.prepared)} prepared, ${forms} compressed forms`);
  show("held", size(content.held_bytes));
  show("budget", `of ${size(content.budget_bytes)}`);
  const filled = content.budget_bytes > 0 ? (100 * content.held_bytes) / content.budget_bytes : 0;
  document.getElementById("level").style.width = `${Math.min(100, filled)}%`;
  const classes = Object.entries(status.responses).filter(([, count]) => count > 0);
  show("responses", classes.map(([name, count]) => `${name}: ${whole.format(count)}`).join(", "));

  if (rate !== null) {
    rates.push(rate);
    if (rates.length > POINTS_MAX) rates.shift();
    draw();
  }
  note.hidden = true;
  document.getElementById("live-numbers").hidden = false;
  live.dataset.state = "live";
}

/** Asks once. Says whether asking again makes sense. */
async function look() {
  let response;
  try {
    response = await fetch("status.json", { cache: "no-store" });
  } catch {
    live.dataset.state = "away";
    note.hidden = false;
    note.textContent = "The server does not answer at the moment. Trying again every two seconds.";
    return true;
  }
  if (!response.ok) {
    live.dataset.state = "absent";
    note.textContent =
      "This server keeps its numbers to itself. Started with --status /status.json it shows them here.";
    return false;
  }
  showStatus(await response.json(), performance.now());
  return true;
}

async function watch() {
  // A page nobody sees asks nothing.
  const goOn = document.hidden || (await look());
  if (goOn) setTimeout(watch, INTERVAL_MS);
}

watch();
