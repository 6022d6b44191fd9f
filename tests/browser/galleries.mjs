// Plays what people leave half loaded: `galleries.mjs ORIGIN`. Ends with 0 if nothing that was wanted failed.
//
// Owns the scenes and the verdict. What the page itself takes back is no failure (net::ERR_ABORTED).

import { Browser } from "./browser.mjs";

const [origin] = process.argv.slice(2);
const program = process.env.CHROMIUM ?? "chromium";

/** So long a page is looked at before it is left. */
const LOOK_MS = 1_000;
const VISITS = 3;

/** Tiles of a map that is moved: asked for, and taken back when the first is there. */
const MAP = `(async () => {
  let failed = 0;
  for (let move = 0; move < 4; move++) {
    const control = new AbortController();
    const tiles = Array.from({ length: 40 }, (_, i) =>
      fetch(\`/pictures/\${i}.png?map\${move}\`, { signal: control.signal, cache: "no-store" })
        .then((answer) => answer.arrayBuffer()));
    await Promise.any(tiles).catch(() => failed++);
    control.abort();
    for (const tile of await Promise.allSettled(tiles))
      if (tile.status === "rejected" && tile.reason.name !== "AbortError") failed++;
  }
  return failed;
})()`;

/** Places of a film that is looked through: the first bytes of each are read. */
const FILM = `(async () => {
  let failed = 0;
  for (let place = 0; place < 6; place++) {
    const control = new AbortController();
    const headers = { Range: \`bytes=\${place * 400_000}-\` };
    try {
      const answer = await fetch("/film.bin", { headers, signal: control.signal, cache: "no-store" });
      if (answer.status !== 206 || (await answer.body.getReader().read()).done) failed++;
    } catch { failed++; }
    control.abort();
  }
  return failed;
})()`;

const browser = await Browser.start(program, ["--ignore-certificate-errors"]);
const mistakes = [];
try {
  const page = await browser.page({ width: 1280, height: 900, scheme: "light" });
  for (let visit = 0; visit < VISITS; visit++) {
    const { errorText } = await page.send("Page.navigate", { url: `${origin}/gallery.html?visit=${visit}` });
    if (errorText) mistakes.push(`visit ${visit}: ${errorText}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  await page.until("document.images.length === 40 && [...document.images].every((image) => image.complete)");
  const whole = await page.evaluate("[...document.images].filter((image) => image.naturalWidth > 0).length");
  if (whole !== 40) mistakes.push(`the last page shows ${whole} of 40 pictures`);
  for (const [name, scene] of [["map", MAP], ["film", FILM]]) {
    const failed = await page.evaluate(scene);
    if (failed > 0) mistakes.push(`${name}: ${failed} failed`);
  }
  const failures = page.failures.filter((text) => text !== "net::ERR_ABORTED");
  if (failures.length > 0) mistakes.push(`${failures.length} requests failed: ${[...new Set(failures)].join(", ")}`);
  console.log(`${page.requests.length} requests, ${page.failures.length} taken back`);
} catch (error) {
  mistakes.push(error.message);
} finally {
  await browser.close();
}
for (const mistake of mistakes) console.error(mistake);
process.exitCode = mistakes.length > 0 ? 1 : 0;
