// Opens pages that `staunch load` wrote, as files, wide and narrow, light and dark.
//
//     node report.mjs PICTURE-FOLDER FILE...
//
// Every mistake is a line on the standard error stream; the exit code is 1 if there was one. The variable CHROMIUM
// names the program, if it is not `chromium`.

import { mkdir } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser, chosen } from "./browser.mjs";

const VIEWS = [
  { name: "wide-light", width: 1200, height: 800, scheme: "light" },
  { name: "wide-dark", width: 1200, height: 800, scheme: "dark" },
  { name: "narrow-light", width: 390, height: 740, scheme: "light" },
  { name: "narrow-dark", width: 390, height: 740, scheme: "dark" },
];

const [pictures, ...files] = process.argv.slice(2);
const browser = await Browser.start(process.env.CHROMIUM ?? "chromium");
let mistakes = 0;
try {
  await mkdir(pictures, { recursive: true });
  await Promise.all(files.map(look));
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

async function look(file) {
  const url = pathToFileURL(resolve(file)).href;
  const name = basename(file, ".html");
  for (const view of chosen(VIEWS)) {
    const where = `${name} ${view.name}`;
    const page = await browser.page(view);
    try {
      await page.open(url);
      for (const fault of await page.evaluate(`(${faults})(${view.width})`)) mistake(where, fault);
      await page.picture(join(pictures, `${where.replace(" ", "-")}.png`));
    } catch (error) {
      mistake(where, error.stack);
    }
    for (const complaint of page.complaints) mistake(where, `console: ${complaint}`);
    for (const asked of page.requests.filter((asked) => asked !== url)) mistake(where, `asks for ${asked}`);
    await page.close();
  }
}

/** Runs in the page: everything that is wrong with it on a screen of that width. */
function faults(width) {
  const found = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > width) found.push(`is ${wide} points wide on a screen of ${width}`);
  const plots = [...document.querySelectorAll("svg")];
  if (plots.length === 0) found.push("has no plot");
  const marks = "path.line[d^=M], path.area[d^=M], circle.dot";
  for (const plot of plots) {
    const title = plot.querySelector(":scope > title")?.textContent.trim();
    if (!title) found.push("a plot has no title");
    if (!plot.querySelector(marks)) found.push(`the plot ${title} shows nothing`);
    if (/NaN|undefined|Infinity/.test(plot.outerHTML)) found.push(`the plot ${title} has a figure that is none`);
    found.push(...lettering(plot).map((fault) => `the plot ${title}: ${fault}`));
  }
  for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!words || !element.checkVisibility() || element.closest("svg, style")) continue;
    // What is too wide for the screen may scroll by itself, in a table's frame.
    const room = element.closest(".wide")?.getBoundingClientRect() ?? { left: 0, right: width };
    const { left, right } = element.getBoundingClientRect();
    const said = element.textContent.trim().slice(0, 30);
    const scrolls = element.closest(".wide");
    if (left < room.left || (right > room.right + 1 && !scrolls)) found.push(`is cut off: ${said}`);
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) found.push(`runs over: ${said}`);
  }
  return [...found, ...accounts()];

  /** Words of a plot stand inside the screen, can be read, and not on each other. */
  function lettering(plot) {
    const faults = [];
    const places = [...plot.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    places.forEach(([words, place], index) => {
      if (place.left < 0 || place.right > width) faults.push(`${words} is cut off`);
      if (place.height < 9) faults.push(`${words} is ${place.height.toFixed(1)} points high`);
      for (const [other, its] of places.slice(index + 1)) {
        const apart = place.right <= its.left || its.right <= place.left || place.bottom <= its.top + 2
          || its.bottom <= place.top + 2;
        if (!apart) faults.push(`${words} stands on ${other}`);
      }
    });
    return faults;
  }

  /** In each column of the accounts, what is shown of the ends makes what was offered. */
  function accounts() {
    const table = [...document.querySelectorAll("table")]
      .find((table) => table.tHead?.rows[0].cells[0].textContent.trim() === "Requests");
    if (!table) return document.querySelector("#goodput, #models") ? [] : ["has no accounts"];
    const figures = [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1)
      .filter((_, index) => index % 2 === 0).map((cell) => Number(cell.textContent.replace(/\D/g, ""))));
    const [offered, ...ends] = figures;
    const shown = ends.pop();
    return offered.flatMap((count, column) => {
      const sum = ends.reduce((sum, row) => sum + row[column], 0);
      return sum === count && shown[column] === count ? [] : [`${sum} ends are shown of ${count} requests offered; the page says ${shown[column]}`];
    });
  }
}
