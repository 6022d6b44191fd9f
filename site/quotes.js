// A board of quotes, each with a line of its last prices.
import { points, watch } from "./live-page.js";

const POINTS_MAX = 40;
const board = document.getElementById("board");
const rows = new Map();
const money = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SVG = "http://www.w3.org/2000/svg";

watch(["quotes.*"], {}, ({ topic, data: { name, price, change } }) => {
  const row = rows.get(topic) ?? add(topic, name);
  row.prices.push(price);
  if (row.prices.length > POINTS_MAX) row.prices.shift();
  row.price.textContent = money.format(price);
  row.change.textContent = `${change > 0 ? "+" : change < 0 ? "\u2212" : ""}${money.format(Math.abs(change))} %`;
  row.change.dataset.way = Math.sign(change);
  const line = points(row.prices, Math.min(...row.prices), Math.max(...row.prices), POINTS_MAX);
  row.line.setAttribute("points", line.join(" "));
});

/** A row of the board, in the order of the names. */
function add(topic, name) {
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = name;
  const [price, change, chart] = [0, 1, 2].map(() => document.createElement("td"));
  const svg = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "polyline");
  svg.setAttribute("viewBox", "0 0 300 60");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Last prices of ${name}`);
  svg.append(line);
  chart.append(svg);
  row.append(head, price, change, chart);
  const after = [...board.rows].find((other) => other.cells[0].textContent > name);
  board.insertBefore(row, after ?? null);
  const entry = { price, change, line, prices: [] };
  rows.set(topic, entry);
  return entry;
}
