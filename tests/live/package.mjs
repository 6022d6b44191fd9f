// The package `staunch-live` as one installs it: imported by its name, without and with a server.
//
//     node package.mjs FOLDER-OF-PACKAGES HOST:PORT
//
// It stands beside the `node_modules` that the package is in. Prints `ready` when it reads, waits for what is published,
// and prints `held` when all was as its types say.
import { strict as assert } from "node:assert";
import { copyFile, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

import { live, matches } from "staunch-live";

const [, , folder, at] = process.argv;
const own = createRequire(`${folder}/index.js`)("ws");
const base = `http://${at}/`;

// Where there is neither class, as in Node before version 22, that is said at once, with the way out.
const platforms = globalThis.WebSocket;
delete globalThis.WebSocket;
assert.equal(globalThis.EventSource, undefined);
const lacking = /^TypeError: live: no WebSocket and no EventSource here\. .* live\(\{ WebSocket, \.\.\.options \}\)$/;
assert.throws(() => live({ base }), lacking);
assert.throws(() => live({ base, transport: "websocket" }), /^TypeError: live: no WebSocket here\./);
assert.throws(() => live({ base, transport: "events", WebSocket: own }), /^TypeError: live: no EventSource here\./);

// A class that is passed is what connects, and a worker is not asked.
globalThis.SharedWorker = class {
  constructor() {
    assert.fail("a class cannot be passed on to a worker");
  }
};
const passed = live({ base, WebSocket: own });
const first = await new Promise((resolve) => passed.watch("match.1", resolve));
assert.deepEqual([first.data, passed.status.transport], ["before", "websocket"]);
globalThis.WebSocket = platforms ?? own;

assert(matches("quotes.*", "quotes.600000") && !matches("quotes.*", "quotes.a.b") && matches("quotes.>", "quotes.a.b"));
assert.throws(() => live(), /^TypeError: live: `base` is missing/);

// By itself the file is the script of the shared worker; in a bundle, which has another name, it must not be.
const file = fileURLToPath(import.meta.resolve("staunch-live"));
await mkdir("assets", { recursive: true });
await copyFile(file, "assets/index-1a2b.mjs");
const bundle = await import(new URL("assets/index-1a2b.mjs", import.meta.url));
assert.match(live({ base }).options.worker, /\/live\.js$/);
assert.equal(bundle.live({ base }).options.worker, null);
assert.equal(bundle.live({ base, worker: "/live.js" }).options.worker, "/live.js");

// A worker that fails after it has begun is left: what it still tells is told once.
const left = [];
globalThis.SharedWorker = class {
  constructor() {
    const channel = new MessageChannel();
    this.port = channel.port2;
    channel.port1.onmessage = ({ data }) => {
      left.push(data);
      if (!data.want) return;
      this.onerror?.();
      channel.port1.postMessage({ update: { topic: data.want, data: "of the worker that failed" } });
    };
  }
};

const data = live({ base });
const seen = [];
const faults = [];
data.onfault = (fault) => faults.push(fault);
const all = new Promise((resolve) => {
  data.watch(["match.1", "match.>"], ({ topic, data: value, number, deleted }) => {
    seen.push(`${topic} ${JSON.stringify(value)}`);
    if (value === "before") console.log("ready");
    if (deleted) resolve(number);
  });
});
assert(Number.isSafeInteger(await all));
assert.deepEqual(seen, ['match.1 "before"', 'match.1 {"home":1}', "match.1 null"]);
assert(left.some(({ bye }) => bye), "the worker that failed is told that its page went");
assert.deepEqual([faults, data.status.isShared, data.status.transport], [[], false, "websocket"]);
console.log("held");
process.exit(0);
