// Opens the page with two WebSockets in a headless Chromium, and prints what came of them: browser.mjs URL KEY, where KEY
// is the hash of the key to be trusted. The WebSockets are opened when a line comes.
import { Browser } from '../browser/browser.mjs';

const browser = await Browser.start(process.env.CHROMIUM ?? 'chromium', [`--ignore-certificate-errors-spki-list=${process.argv[3]}`]);
const page = await browser.page({ width: 800, height: 600, scheme: 'light' });
await page.open(`${process.argv[2]}/sockets.html`);
console.log('loaded');
await new Promise((resolve) => process.stdin.once('data', resolve));
await page.evaluate('begin()');
await page.until('opened === 2');
console.log('open');
await page.until('echoed.length >= 16 && seen.length >= 1 && fetched.length >= 5');
console.log(`echoed ${await page.evaluate('echoed.join(",")')}`);
console.log(`seen ${await page.evaluate('seen.join(",")')}`);
await page.evaluate('closeAll()');
await page.until('closed.length === 2');
console.log(`closed ${await page.evaluate('closed.join(",")')}`);
for (const complaint of page.complaints) console.log(`complaint ${complaint}`);
await browser.close();
process.exit(0);
