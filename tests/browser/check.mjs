// Opens the demo site and the listings of a running server as a person would: wide and narrow, light and dark,
// with the keyboard, without scripts.
//
//     node check.mjs BASE-URL PICTURE-FOLDER [--status] [--live] [--listing PATH]... [--names PATH COUNT]
//
// --status says that status.json is served, --live that the demonstration is published, --listing names a folder that shows its entries, --names one
// of COUNT files that hold their own names. Every mistake is a line on the standard error stream; the exit code is 1 if there
// was one. The variable CHROMIUM names the program, if it is not `chromium`.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Browser, chosen } from "./browser.mjs";

const VIEWS = [
  { name: "wide-light", width: 1280, height: 800, scheme: "light" },
  { name: "wide-dark", width: 1280, height: 800, scheme: "dark" },
  { name: "narrow-light", width: 360, height: 740, scheme: "light" },
  { name: "narrow-dark", width: 360, height: 740, scheme: "dark" },
];

const { base, pictures, status, live, listings, names } = options(process.argv.slice(2));
/** The rows of a listing, read from the page; the names as bytes in lower case, as they are compared. */
const ROWS = `[...document.querySelectorAll("tbody tr:has(time)")].map((row) => ({
  folder: row.querySelector("a").getAttribute("href").endsWith("/"),
  name: row.querySelector("a").getAttribute("href").replace(/\\/$/, "")
    .replaceAll(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
    .replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()),
  size: parseInt(row.cells[1].title || "0"),
  time: row.querySelector("time").dateTime,
}))`;

/** What may be answered with 404. No page lets a browser ask for an icon that is not there. */
const ABSENT_PATHS = ["nothing-here", ...(status ? [] : ["status\\.json"]), ...(live ? [] : ["live\\.js"])];
const ABSENT = new RegExp(`/(${ABSENT_PATHS.join("|")})`);
/** Pages that show live data. */
const LIVE = ["/match.html", "/quotes.html"];
const browser = await Browser.start(process.env.CHROMIUM ?? "chromium");
const mistakes = [];
try {
  await mkdir(pictures, { recursive: true });
  for (const view of chosen(VIEWS)) await lookAround(view);
  await withoutScripts();
  for (const path of listings) await sortLinks(path);
  for (const path of listings) await linksLeadSomewhere(path);
  await linksLeadSomewhere("/");
  if (names) await namesLeadToTheirFiles(names);
  if (status) await numbersMove();
  if (live) for (const path of LIVE) await updatesCome(path);
} catch (error) {
  mistake("the run", error.stack);
} finally {
  await browser.close();
}
process.exitCode = mistakes.length === 0 ? 0 : 1;
console.log(`${mistakes.length} mistakes; pictures in ${pictures}`);

function options(words) {
  const [base, pictures, ...rest] = words;
  const found = { base, pictures, status: false, live: false, listings: [], names: undefined };
  words = rest;
  while (words.length > 0) {
    const word = words.shift();
    if (word === "--status") found.status = true;
    else if (word === "--live") found.live = true;
    else if (word === "--listing") found.listings.push(words.shift());
    else if (word === "--names") found.names = { path: words.shift(), count: Number(words.shift()) };
    else throw new Error(`unknown option ${word}`);
  }
  return found;
}

function mistake(where, what) {
  mistakes.push(what);
  console.error(`${where}: ${what}`);
}

function expect(truth, where, what) {
  if (!truth) mistake(where, what);
}

/** Runs `story` on a new page that shows `path`. Complaints of the console are mistakes, unless foreseen. */
async function onPage(path, view, story) {
  const page = await browser.page(view);
  const where = `${path} ${view.name ?? ""}`;
  try {
    await page.open(base + path);
    await story(page, where);
  } catch (error) {
    mistake(where, error.stack);
  }
  for (const complaint of page.complaints) {
    expect(/404/.test(complaint) && ABSENT.test(complaint), where, `console: ${complaint}`);
  }
  await page.close();
}

async function lookAround(view) {
  const site = ["/", "/headers.html", "/nothing-here", ...(status ? LIVE : [])];
  const all = [...site, ...listings, ...(names ? [names.path] : [])];
  for (const path of all) {
    await onPage(path, view, async (page, where) => {
      if (path === "/") await settled(page);
      if (LIVE.includes(path)) await begun(page);
      await fits(page, where, view);
      await readable(page, where);
      if (path !== "/nothing-here") await keyboard(page, where);
      const name = path.replaceAll("/", " ").trim().replaceAll(/[^a-z.-]+/gi, "-") || "index";
      await page.picture(join(pictures, `${name}-${view.name}.png`));
    });
  }
}

/** Waits until the front page shows its numbers, or says that there are none. */
function settled(page) {
  return page.until(`document.getElementById("live").dataset.state === "${status ? "live" : "absent"}"`);
}

/** Waits until a page shows live data, or says that there is none. */
async function begun(page) {
  if (!live) return page.until(`document.getElementById("live-note").textContent.includes("no live data")`);
  await page.until(`document.getElementById("live").dataset.state === "open"`);
  await page.until(`document.querySelector('[data-live="delay"]').textContent.includes("ms after")`);
  const hasReport = `document.querySelector('[data-live="polled"]')`;
  await page.until(`!${hasReport} || ${hasReport}.textContent.includes("by the last poll")`);
  // Every good was traded, or the line of the match has begun.
  await page.until(`document.querySelectorAll("#board tr").length === 8 || (document.getElementById("line")?.points.numberOfItems ?? 0) > 2`);
}

/** What is published shows: the page changes by itself. */
async function updatesCome(path) {
  await onPage(path, VIEWS[0], async (page, where) => {
    await begun(page);
    const text = `document.getElementById("live").innerText`;
    const first = await page.evaluate(text);
    await page.until(`${text} !== ${JSON.stringify(first)}`);
    expect(!/NaN|undefined|null/.test(await page.evaluate(text)), where, "shows what is none");
  });
}

/** Nothing reaches over the right edge, at most what scrolls by itself. */
async function fits(page, where, view) {
  const wide = await page.evaluate(`document.documentElement.scrollWidth`);
  expect(wide <= view.width, where, `is ${wide} points wide on a screen of ${view.width}`);
  expect(await page.evaluate(`document.documentElement.lang === "en"`), where, "does not say its language");
}

/** All text stands out from what is behind it, by the measure of WCAG 2.2, 1.4.3: 4.5 to 1. */
async function readable(page, where) {
  const faint = await page.evaluate(`(() => {
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
      const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = numbers(getComputedStyle(at).backgroundColor);
        if (colour[3] !== 0) return colour;
      }
      return matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement)
        .colorScheme.includes("dark") ? [18, 18, 18] : [255, 255, 255];
    };
    const faint = [];
    for (const element of document.querySelectorAll("body *")) {
      const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
      if (!text || !element.checkVisibility() || element.closest("svg, script, style")) continue;
      const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      const start = element.textContent.trim().slice(0, 30);
      if (ratio < 4.5) faint.push(element.tagName + " " + start + " " + ratio.toFixed(1));
    }
    return faint;
  })()`);
  expect(faint.length === 0, where, `faint text: ${faint.slice(0, 5).join("; ")}`);
}

/** The tabulator reaches the links one by one, and each shows that it is reached. */
async function keyboard(page, where) {
  const links = await page.evaluate(`[...document.querySelectorAll("a[href]")]
    .filter((link) => link.checkVisibility()).slice(0, 12).map((link) => link.href)`);
  for (const link of links) {
    await page.press("Tab", 9);
    const [href, outline] = await page.evaluate(`[document.activeElement].flatMap((element) =>
      [element.href, getComputedStyle(element).outlineStyle])`);
    expect(href === link, where, `the tabulator reached ${href} instead of ${link}`);
    expect(outline !== "none", where, `${href} does not show that it has the focus`);
  }
  await page.evaluate(`document.activeElement.blur()`);
}

/** Without scripts, all but the numbers is there. */
async function withoutScripts() {
  const view = { name: "without scripts", width: 1280, height: 800, scheme: "light", scripts: false };
  await onPage("/", view, async (page, where) => {
    const text = await page.evaluate(`document.body.innerText`);
    expect(text.includes("status.json"), where, "does not say where the numbers are");
    expect(text.includes("deadline"), where, "does not tell its story");
  });
  if (!live) return;
  for (const path of LIVE) {
    await onPage(path, view, async (page, where) => {
      const text = await page.evaluate(`document.body.innerText`);
      expect(text.includes("staunch\u00a0publish\u00a0--demo"), where, "does not say where the data is");
    });
  }
}

/** Follows the heads of the columns, there and back. */
async function sortLinks(path) {
  await onPage(path, VIEWS[0], async (page, where) => {
    const before = await page.evaluate(ROWS);
    expect(before.length > 1, where, "lists too little to be sorted");
    for (const [column, key] of [[1, "name"], [2, "size"], [3, "time"]]) {
      const head = `document.querySelector("thead th:nth-child(${column})")`;
      for (const direction of key === "name" ? ["descending", "ascending"] : ["ascending", "descending"]) {
        await page.leave(`${head}.querySelector("a").click()`);
        const state = await page.evaluate(`${head}.getAttribute("aria-sort")`);
        expect(state === direction, where, `${key} says ${state} instead of ${direction}`);
        const others = await page.evaluate(`document.querySelectorAll("[aria-sort]").length`);
        expect(others === 1, where, `${others} columns say that they are sorted`);
        const rows = await page.evaluate(ROWS);
        expect(rows.length === before.length, where, `${rows.length} rows instead of ${before.length}`);
        expect(inOrder(rows, key, direction), where, `is not ${direction} by ${key}`);
      }
    }
  });
}

function inOrder(rows, key, direction) {
  return rows.every((row, index) => {
    const last = rows[index - 1];
    if (!last || last.folder !== row.folder) return !last || last.folder;
    return direction === "ascending" ? last[key] <= row[key] : last[key] >= row[key];
  });
}

/** Every link of a page is answered, and the one that shall not be found is not. */
async function linksLeadSomewhere(path) {
  await onPage(path, VIEWS[0], async (page, where) => {
    const answers = await page.evaluate(`Promise.all([...document.querySelectorAll("a[href], link[href]")]
      .filter((link) => ${status} || !link.href.endsWith("/status.json"))
      .map((link) => fetch(link.href, { cache: "no-store" }).then((answer) => [link.href, answer.status])))`);
    expect(answers.length > 3, where, "has hardly a link");
    for (const [href, code] of answers) {
      const wanted = href.endsWith("/nothing-here") ? 404 : 200;
      expect(code === wanted, where, `${href} is answered with ${code}`);
    }
  });
}

/** Each file of the folder holds the bytes of its name: link, name and content must agree. */
async function namesLeadToTheirFiles({ path, count }) {
  await onPage(path, VIEWS[0], async (page, where) => {
    const wrong = await page.evaluate(`(async () => {
      const encode = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      const wrong = [];
      for (const link of document.querySelectorAll("tbody a:not(.up)")) {
        const href = link.getAttribute("href");
        const hex = (all, digits) => digits?.toLowerCase() ?? all.charCodeAt(0).toString(16);
        const wanted = href.replaceAll(/%(..)|./g, hex);
        const answer = await fetch(link.href);
        const held = encode(new Uint8Array(await answer.arrayBuffer()));
        if (answer.status !== 200 || held !== wanted) wrong.push(href + " " + answer.status + " " + held);
      }
      return wrong;
    })()`);
    for (const one of wrong) mistake(where, `leads to something else: ${one}`);
    const links = await page.evaluate(`document.querySelectorAll("tbody a:not(.up)").length`);
    const rows = await page.evaluate(`fetch("?json").then((answer) => answer.json())`);
    expect(links === count, where, `${links} entries of ${count} on the page`);
    expect(rows.length === count, where, `${rows.length} entries of ${count} in JSON`);
    const harmless = await page.evaluate(`!window.mistake && document.scripts.length === 0`);
    expect(harmless, where, "a name became a script");
  });
}

/** The numbers are there and follow what happens. */
async function numbersMove() {
  await onPage("/", VIEWS[0], async (page, where) => {
    await settled(page);
    const requests = `Number(document.querySelector('[data-status="requests"]').textContent.replace(/,/g, ""))`;
    const first = await page.evaluate(requests);
    expect(first > 0, where, `shows ${first} requests`);
    await page.until(`${requests} > ${first}`);
    await page.until(`document.getElementById("rates-line").points.numberOfItems > 2`);
    await page.picture(join(pictures, "index-live.png"));
    for (const name of ["sent", "open", "accepted", "uptime", "engine", "files", "prepared", "held"]) {
      const text = await page.evaluate(`document.querySelector('[data-status="${name}"]').textContent`);
      expect(/[1-9a-z]/.test(text) && !/NaN|undefined|null/.test(text), where, `${name} shows "${text}"`);
    }
  });
}
