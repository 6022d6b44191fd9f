// Opens the page with an EventSource in a headless Chromium, says when its stream is open, and prints what
// came when twenty updates did.
import { Browser } from '../browser/browser.mjs';

const browser = await Browser.start(process.env.CHROMIUM);
const page = await browser.page({ width: 800, height: 600, scheme: 'light' });
await page.open(`${process.argv[2]}/live-page.html`);
await page.until('opened > 0');
console.log('ready');
await page.until('seen.length >= 20');
console.log(`seen ${await page.evaluate('seen.join(",")')}`);
await browser.close();
process.exit(0);
