// Fetches a page that changes again and again, by HTTPS in a headless Chromium, until it came as the difference to the
// version before three times.
//
//     node differences.mjs URL FILE HASH
//
// FILE is the page on the disk, HASH that of the key to trust. Prints what each fetch cost; the exit code is 1 if something else came than stands in
// the file, or if differences never come. The variable CHROMIUM names the program, if it is not `chromium`.

import { createHash } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";
import { get } from "node:https";
import { Browser } from "./browser.mjs";

/** Versions after which it is a failure: a browser may take a moment to keep a dictionary. */
const VERSIONS_MAX = 60;
const WANTED = 3;

const [url, file, keyHash] = process.argv.slice(2);
const browser = await Browser.start(process.env.CHROMIUM ?? "chromium", [`--ignore-certificate-errors-spki-list=${keyHash}`]);
let differences = 0;
try {
  const page = await browser.page({ width: 800, height: 600, scheme: "light" });
  await change(version(0));
  await page.open(`${url}/`);
  await fetched(page, 0);
  for (let number = 1; number < VERSIONS_MAX && differences < WANTED; number++) {
    await change(version(number));
    await askedBefore(version(number - 1));
    const { encoded, decoded } = await fetched(page, number);
    console.log(`version ${number}: ${encoded} of ${decoded} bytes`);
    if (encoded < 300) differences += 1;
  }
} catch (error) {
  console.error(error.stack);
  differences = 0;
} finally {
  await browser.close();
}
process.exitCode = differences === WANTED ? 0 : 1;

function version(number) {
  const lines = Array.from({ length: 200 }, (_, line) => `<p>${(line * 2654435761) % 4294967296} of ${line}</p>\n`);
  return `<title>version ${number}</title>\n${lines.join("")}`;
}

async function change(text) {
  await writeFile(`${file}.next`, text);
  await rename(`${file}.next`, file);
}

/** Somebody else, who has the same former version, asked first: the difference is there then. */
async function askedBefore(former) {
  const hash = createHash("sha256").update(former).digest("base64");
  const headers = { "Available-Dictionary": `:${hash}:`, "Accept-Encoding": "dcz" };
  for (;;) {
    const coding = await new Promise((resolve, reject) => {
      const request = get(`${url}/page.html`, { headers, rejectUnauthorized: false, agent: false }, (answer) => {
        answer.resume().on("end", () => resolve(answer.headers["content-encoding"]));
      });
      request.on("error", reject);
    });
    if (coding === "dcz") return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What a fetch of the page cost, which must bring this version. */
async function fetched(page, number) {
  const script = `(async () => {
    performance.clearResourceTimings();
    const answer = await fetch("/page.html", { cache: "no-cache" });
    const text = await answer.text();
    const entries = () => performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/page.html"));
    while (entries().length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    const { encodedBodySize, decodedBodySize } = entries().at(-1);
    return { text, encoded: encodedBodySize, decoded: decodedBodySize };
  })()`;
  const { text, encoded, decoded } = await page.evaluate(script);
  if (text !== version(number)) throw new Error(`version ${number}: got ${JSON.stringify(text.slice(0, 60))}`);
  return { encoded, decoded };
}
