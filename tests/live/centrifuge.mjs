// Centrifugo's client for JavaScript, unmodified, against the server named: it reads, publishes, is cut off and
// recovers, shows its token anew.
//
//     node centrifuge.mjs FOLDER-OF-PACKAGES HOST:PORT SECRET-OF-ISSUER json|protobuf
//
// Prints `held` when everything was as its users know it; on a line of its own what it waits for.
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";

const [, , folder, at, secret, language] = process.argv;
const require = createRequire(`${folder}/index.js`);
const isBinary = language === "protobuf";
const { Centrifuge } = require(isBinary ? "centrifuge/build/protobuf" : "centrifuge");
const WebSocket = require("ws");

/** Every transport that was opened, so that it can be cut. */
const opened = [];
class Watched extends WebSocket {
  constructor(...words) {
    super(...words);
    opened.push(this);
  }
}

/** Data as they are published and come: values as JSON, or their bytes as Protobuf carries them. */
const told = (value) => (isBinary ? new TextEncoder().encode(JSON.stringify(value)) : value);
const heard = (data) => (isBinary ? JSON.parse(new TextDecoder().decode(data)) : data);

const part = (data) => Buffer.from(data).toString("base64url");
function token(seconds, topics) {
  const detail = {
    type: "https://mercure.rocks/authorization-detail",
    actions: ["publish", "subscribe"],
    topics: topics.map((match) => ({ match })),
  };
  const claims = {
    iss: "https://id.example.org", aud: "https://live.example.org", exp: Math.floor(Date.now() / 1000) + seconds,
    authorization_details: [detail],
  };
  const signed = `${part(JSON.stringify({ alg: "HS256", typ: "at+jwt" }))}.${part(JSON.stringify(claims))}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

function check(holds, text) {
  if (!holds) throw new Error(text);
}

/** The next event of that name. */
function event(emitter, name) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no event ${name}`)), 60_000);
    emitter.once(name, (context) => {
      clearTimeout(late);
      resolve(context);
    });
  });
}

const client = new Centrifuge(`ws://${at}/connection/websocket`, {
  websocket: Watched, token: token(600, ["l.js", "v.js", "v.bytes"]), minReconnectDelay: 10, maxReconnectDelay: 20,
});
const log = client.newSubscription("l.js");
const value = client.newSubscription("v.js");
const numbers = [];
log.on("publication", ({ data }) => numbers.push(heard(data).n));
let last;
value.on("publication", ({ data }) => (last = heard(data)));
log.subscribe();
value.subscribe();
client.connect();
await Promise.all([log.ready(60_000), value.ready(60_000)]);

for (let n = 0; n < 10; n += 1) await client.publish("l.js", told({ n }));
await value.publish(told("first"));
// Cut off without a farewell; what is published meanwhile is recovered.
const gone = event(client, "connecting");
const back = event(log, "subscribed");
opened.at(-1).terminate();
await gone;
const other = new Centrifuge(`ws://${at}/ws`, { websocket: WebSocket, token: token(600, ["l.js", "v.js", "v.bytes"]) });
other.connect();
await other.ready(60_000);
for (let n = 10; n < 20; n += 1) await other.publish("l.js", told({ n }));
await other.publish("v.js", told("second"));
const { wasRecovering, recovered } = await back;
check(wasRecovering && recovered, "it was not recovered");
while (numbers.length < 20 || last !== "second") await new Promise((resolve) => setTimeout(resolve, 20));
check(numbers.every((number, place) => number === place), `out of order: ${numbers}`);

check(opened.every(({ protocol }) => protocol === (isBinary ? "centrifuge-protobuf" : "")), opened[0].protocol);
if (isBinary) {
  // Bytes that are no text come as they were published, to those who ask by the URL as well.
  const bytes = Uint8Array.of(8, 255, 0);
  const named = new WebSocket(`ws://${at}/ws?topic=v.bytes&from=now&cf_protocol=protobuf`);
  const pushes = [];
  named.on("message", (message, isBinaryMessage) => pushes.push([Buffer.from(message), isBinaryMessage]));
  const first = client.newSubscription("v.bytes");
  const came = event(first, "publication");
  first.subscribe();
  await first.ready(60_000);
  while (pushes.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await other.publish("v.bytes", bytes);
  check(Buffer.compare(Buffer.from((await came).data), Buffer.from(bytes)) === 0, "other bytes came");
  while (pushes.length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
  check(pushes.every(([, isOne]) => isOne) && pushes[1][0].includes(Buffer.from(bytes)), "no push by the URL");
  named.terminate();
}
const { publications } = await log.history({ limit: 3, reverse: true });
check(publications.map(({ data }) => heard(data).n).join() === "19,18,17", JSON.stringify(publications));
const refused = await client.publish("elsewhere", told({})).catch((error) => error.code);
check(refused === 103, `publishing elsewhere: ${refused}`);
const absent = await log.presence().catch((error) => error.code);
check(absent === 108, `presence: ${absent}`);
log.unsubscribe();
await other.publish("l.js", told({ n: 20 }));
await other.publish("v.js", told("third"));
while (last !== "third") await new Promise((resolve) => setTimeout(resolve, 20));
check(numbers.length === 20, "what was unsubscribed came");
other.disconnect();

// A token that ends soon is shown anew before that, and the connection stays.
let renewed = 0;
const short = new Centrifuge(`ws://${at}/ws`, {
  websocket: Watched,
  // Of the 16 s that are left with the half minute of leeway, the client is told twelve: it has four to ask.
  token: token(16 - 30, ["private.js"]),
  getToken: async () => {
    renewed += 1;
    return token(600, ["private.js"]);
  },
});
const secrets = short.newSubscription("private.js");
secrets.subscribe();
short.connect();
await secrets.ready(60_000);
const connections = opened.length;
while (renewed === 0) await new Promise((resolve) => setTimeout(resolve, 50));
await new Promise((resolve) => setTimeout(resolve, 5_000));
check(opened.length === connections && short.state === "connected", `${short.state} after ${renewed} tokens`);
const came = event(secrets, "publication");
await short.publish("private.js", told({ private: true }));
check(heard((await came).data).private, "a private update did not come");
short.disconnect();

const invalid = new Centrifuge(`ws://${at}/ws`, { websocket: WebSocket, token: "nonsense" });
invalid.connect();
const end = await event(invalid, "disconnected");
check(end.code === 3500, `an invalid token: ${end.code}`);

client.disconnect();
console.log("held");
