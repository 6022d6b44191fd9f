// Opens pages of a running server again and again, in several tabs at once, and finds any that shows another
// page than its address says: in the document, and in a picture of it.
//
//     node wander.mjs BASE-URL FOLDER COUNT SEED PATH...
//
// FOLDER is what is served: files in it are touched meanwhile, so that answers are prepared anew. Each page is
// first fetched alone, outside of the browser: its title and links are what every visit must show. A picture is
// compared with those of the other pages. Every mistake is a line on the standard error stream; the exit code
// is 1 if there was one.
//
// Rarely a picture is that of the page that the tab showed before, although the document is the right one before
// and after it: the browser's, whatever the server. Such a picture is counted as late, and taken again; if it is
// still that of another page it is a mistake.

import { createHash } from "node:crypto";
import { readdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Browser } from "./browser.mjs";

const TABS = 6;
/** Scripts are off, so that the document stays what was served. */
const VIEW = { width: 800, height: 600, scheme: "light", scripts: false };
/** One visit in so many is looked at as a picture, and one in so many touches a file before. */
const VISITS_A_PICTURE = 3;
const VISITS_A_TOUCH = 50;

const [base, folder, count, seed, ...paths] = process.argv.slice(2);
const random = randomFrom(Number(seed));
const mistakes = [];
const expected = new Map();
/** Which page a picture belongs to, by its hash. */
const seen = new Map();
const done = { visits: 0, pictures: 0, touches: 0, late: 0 };

for (const path of paths) expected.set(path, await alone(path));
const files = (await readdir(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
const browser = await Browser.start(process.env.CHROMIUM ?? "chromium");
try {
  await Promise.all(Array.from({ length: TABS }, wander));
} catch (error) {
  mistake(error.stack);
} finally {
  await browser.close();
}
process.exitCode = mistakes.length === 0 ? 0 : 1;
console.log(`${done.visits} visits, ${done.pictures} pictures (${done.late} late), ${done.touches} touches, `
  + `${mistakes.length} mistakes`);

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
function randomFrom(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function choose(list) {
  return list[Math.floor(random() * list.length)];
}

function mistake(what) {
  mistakes.push(what);
  console.error(what);
}

/** What a page shows to a client that is alone. */
async function alone(path) {
  const text = await (await fetch(base + path, { headers: { "Accept-Encoding": "identity" } })).text();
  const links = [...text.matchAll(/<a [^>]*?href="([^"]*)"/g)].length;
  return { title: text.match(/<title>([^<]*)<\/title>/)?.[1] ?? "", links };
}

/** What the tab shows now. */
function shown(page) {
  return page.evaluate(`({
    path: location.pathname + location.search,
    title: document.title,
    links: document.querySelectorAll("a[href]").length,
  })`);
}

async function wander() {
  let page = await browser.page(VIEW);
  let before = "";
  for (let visit = 1; done.visits < Number(count); visit++) {
    done.visits++;
    if (done.visits % VISITS_A_TOUCH === 0) await touch();
    const path = choose(paths);
    if (random() < 0.05) {
      await page.close();
      page = await browser.page(VIEW);
      before = "";
    }
    await page.send("Network.setCacheDisabled", { cacheDisabled: random() < 0.5 });
    await page.open(base + path);
    await check(page, path);
    if (visit % VISITS_A_PICTURE === 0) await picture(page, path, before);
    before = path;
  }
  await page.close();
}

async function touch() {
  done.touches++;
  const now = new Date();
  await utimes(choose(files), now, now);
}

async function check(page, path) {
  const { title, links } = expected.get(path);
  const now = await shown(page);
  const right = now.path === path && now.title === title && now.links === links;
  if (!right) mistake(`${path}: shows ${JSON.stringify(now)} instead of "${title}" with ${links} links`);
}

/** The picture of one page is never that of another, and the page is still the same behind it. */
async function picture(page, path, before) {
  done.pictures++;
  let hash = await taken(page, path);
  if ((seen.get(hash) ?? path) === before && before !== path) {
    done.late++;
    hash = await taken(page, path);
  }
  const owner = seen.get(hash) ?? path;
  if (owner !== path) mistake(`${path}: its picture is that of ${owner}; before it the tab showed ${before}`);
  seen.set(hash, owner);
}

async function taken(page, path) {
  const { data } = await page.send("Page.captureScreenshot", { format: "png" });
  await check(page, path);
  return createHash("sha256").update(data).digest("hex");
}
