// Opens the operator's page of a running server, wide and narrow, light and dark.
//
//     node operator.mjs ADMIN-URL PICTURE-FOLDER
//
// Every mistake is a line on the standard error stream; the exit code is 1 if there was one. The variable CHROMIUM
// names the program, if it is not `chromium`.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Browser, chosen } from "./browser.mjs";

const VIEWS = [
  { name: "wide-light", width: 1280, height: 800, scheme: "light" },
  { name: "wide-dark", width: 1280, height: 800, scheme: "dark" },
  { name: "narrow-light", width: 390, height: 740, scheme: "light" },
  { name: "narrow-dark", width: 390, height: 740, scheme: "dark" },
];

/** What the page may ask for beside itself. */
const OWN = ["/status.json", "/metrics"];

const [base, pictures] = process.argv.slice(2);
const browser = await Browser.start(process.env.CHROMIUM ?? "chromium");
let mistakes = 0;
try {
  await mkdir(pictures, { recursive: true });
  for (const view of chosen(VIEWS)) await look(view);
} catch (error) {
  mistake("the run", error.stack);
} finally {
  await browser.close();
}
process.exitCode = mistakes === 0 ? 0 : 1;
console.log(`${mistakes} mistakes; pictures in ${pictures}`);

function mistake(where, what) {
  mistakes += 1;
  console.error(`${where}: ${what}`);
}

async function look(view) {
  const page = await browser.page(view);
  await page.open(`${base}/`);
  // Two looks make rates, and a third makes lines of them.
  await page.until(`document.querySelectorAll("#tiles dd").length === 8`);
  await page.until(`[...document.querySelectorAll("#charts path")].filter((path) => path.getAttribute("d").length > 20).length >= 4`);
  await page.picture(join(pictures, `operator-${view.name}.png`));
  const faults = await page.evaluate(`(${judge})(${view.width})`);
  for (const fault of faults) mistake(view.name, fault);
  // Another span, and the moment under the pointer.
  await page.evaluate(`document.querySelectorAll(".spans button")[0].click()`);
  await page.until(`document.querySelectorAll(".spans button")[0].getAttribute("aria-pressed") === "true"`);
  for (const complaint of page.complaints) mistake(view.name, `console: ${complaint}`);
  for (const asked of page.requests.map((asked) => new URL(asked))) {
    if (asked.protocol !== "data:" && asked.pathname !== "/" && !OWN.includes(asked.pathname)) mistake(view.name, `asks for ${asked}`);
  }
  await page.close();
}

/** Runs in the page: everything that is wrong with it on a screen of that width. */
function judge(width) {
  const found = [];
  if (document.documentElement.scrollWidth > width) found.push(`is ${document.documentElement.scrollWidth} wide`);
  if (document.getElementById("state").textContent !== "ready") found.push("does not say that the server is ready");
  for (const title of ["Who gives way, and why", "Workers", "Sites", "Live data", "Process"]) {
    if (![...document.querySelectorAll("h2")].some((head) => head.textContent === title)) found.push(`lacks ${title}`);
  }
  for (const cell of document.querySelectorAll("dd, td, .legend, h2")) {
    if (/NaN|undefined|Infinity|null/.test(cell.textContent)) found.push(`says ${cell.textContent}`);
  }
  for (const tile of document.querySelectorAll("dl > div")) {
    if (tile.scrollWidth > tile.clientWidth + 1) found.push(`a tile is cut off: ${tile.textContent}`);
  }
  return found;
}
