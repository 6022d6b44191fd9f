// Opens six tabs that watch topics by /live.js, says when all of them do, and waits for what is published. Prints
// `held` when each tab got what it asked for, in order, and a late one what was there before.
import { Browser } from "../browser/browser.mjs";

const base = process.argv[2];
const browser = await Browser.start(process.env.CHROMIUM);
const watched = ["l.a", "l.*", "v.a", "l.a,v.a", "*", "v.>"];
const pages = [];
for (const topics of watched) {
  const page = await browser.page({ width: 800, height: 600, scheme: "light" });
  await page.open(`${base}/tab.html#${topics}`);
  await page.until("state === 'open'");
  // Whatever watches a value has the one that was there before.
  if (/v|^\*/.test(topics)) await page.until("seen.includes('v.a:before')");
  pages.push(page);
}
const shared = await Promise.all(pages.map((page) => page.evaluate("isShared")));
if (!shared.every(Boolean)) throw new Error(`not shared: ${shared}`);
console.log("ready");

const numbers = Array.from({ length: 19 }, (_, place) => `l.a:${place + 1}`);
for (const [place, page] of pages.entries()) {
  const topics = watched[place];
  const wanted = [
    ...(/l|\*/.test(topics.replace("v.>", "")) ? numbers : []),
    ...(/v|^\*/.test(topics) ? ["v.a:after"] : []),
  ];
  for (const update of wanted) await page.until(`seen.includes(${JSON.stringify(update)})`);
  const seen = await page.evaluate("seen");
  const log = seen.filter((update) => numbers.includes(update));
  if (log.join() !== (wanted.includes("l.a:1") ? numbers.join() : "")) throw new Error(`${topics}: ${seen}`);
  const others = seen.filter((update) => !topics.includes("*") && !topics.includes(">") && !topics.includes(update.split(":")[0]));
  if (others.length > 0) throw new Error(`${topics} did not ask for ${others}`);
}
// A tab that comes late gets what was kept; one that goes takes its topics with it.
const late = await browser.page({ width: 800, height: 600, scheme: "light" });
await late.open(`${base}/tab.html#l.a`);
await late.until("seen.includes('l.a:19')");
for (const page of pages) {
  if (page.complaints.length > 0) throw new Error(page.complaints.join("\n"));
}
await browser.close();
console.log("held");
process.exit(0);
