// Five bodies at a time whose answers come before them: `early.mjs URL CA`, by Node's own HTTP/2. Ends with 0 if each
// stream is answered 405 and closes.

import { readFileSync } from "node:fs";
import { connect } from "node:http2";

const [url, ca] = process.argv.slice(2);
const session = connect(url, { ca: readFileSync(ca) });

/** A wait longer than this is a failure: it only keeps a broken run from hanging. */
const patience = setTimeout(() => {
  console.error("a stream stays open");
  process.exit(1);
}, 60_000);

const put = () =>
  new Promise((resolve, reject) => {
    const stream = session.request({ ":method": "PUT", ":path": "/5000" });
    let status = 0;
    stream.on("response", (fields) => (status = fields[":status"]));
    stream.on("error", reject);
    stream.on("close", () => resolve(status));
    stream.resume();
    stream.end(Buffer.alloc(60_000));
  });

for (let round = 0; round < 4; round++) {
  const statuses = await Promise.all(Array.from({ length: 5 }, put));
  if (statuses.some((status) => status !== 405)) throw new Error(`answered ${statuses}`);
}
clearTimeout(patience);
session.close();
