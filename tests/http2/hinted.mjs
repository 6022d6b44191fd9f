// Opens a page whose answer waits until the browser has asked for what it was told of before: hinted.mjs URL KEY, where
// KEY is the hash of the key to be trusted.
import { Browser } from '../browser/browser.mjs';

const browser = await Browser.start(process.env.CHROMIUM ?? 'chromium', [`--ignore-certificate-errors-spki-list=${process.argv[3]}`]);
const page = await browser.page({ width: 800, height: 600, scheme: 'light' });
await page.open(process.argv[2]);
console.log(await page.evaluate('getComputedStyle(document.body).color'));
await browser.close();
process.exit(0);
