// Live data for pages: one connection for all tabs of an origin, which comes back by itself where it was.
//
//     import { live } from "/live.js";
//     const stop = live().watch(["match.1", "quotes.*"], ({ topic, data }) => show(topic, data));
//
// This file is a module for pages, and the shared worker that they have in common. Where there are no shared
// workers, each page has a connection of its own. Nothing else is needed. The server serves it as `/live.js`; as a
// package for bundlers it is `staunch-live`.

const RETRY_MS = { least: 1_000, most: 30_000 };
/** So many delays make the median that is told. */
const DELAYS = 32;
/** What comes so soon after a connection opened may have been published long before. */
const SNAPSHOT_MS = 1_000;
/** The state is told so often at most, unless it is another one. */
const STATUS_MS = 500;

/** Whether a topic is what was asked for: its name, or a pattern such as `b.*`, `b.>` or `*`. */
export function matches(asked, topic) {
  if (asked === topic || asked === "*") return true;
  const words = asked.split(".");
  const given = topic.split(".");
  if (!words.some((word) => word === "*" || word === ">")) return false;
  for (const [place, word] of words.entries()) {
    if (place >= given.length) return false;
    if (word === ">") return true;
    if (word !== "*" && word !== given[place]) return false;
  }
  return words.length === given.length;
}

/** The class of each transport: the name of the global, and of the option where a program brings its own. */
const CLASSES = { websocket: "WebSocket", events: "EventSource", poll: "fetch" };
/** What Resource Timing adds for the head of an answer, whatever that has. */
const HEAD_BYTES = 300;

/** The class of a transport: the program's own, the platform's, or none. */
const classOf = (own, transport) => own[CLASSES[transport]] ?? globalThis[CLASSES[transport]];

/** The transport to begin with. Told at once where there is none, not by a connection that cannot be made. */
function transportOf(asked, own) {
  const possible = asked === "auto" ? ["websocket", "events"] : [asked];
  const found = possible.find((transport) => classOf(own, transport));
  if (found) return asked === "auto" && found === "websocket" ? "auto" : found;
  const names = possible.map((transport) => CLASSES[transport]);
  throw new TypeError(
    `live: no ${names.join(" and no ")} here. Node has a WebSocket from version 22 on; before, pass one, such as that ` +
      'of the package "ws": live({ WebSocket, ...options })',
  );
}

/** A polled value, and whether it is bytes in base64. */
async function valueOf(answer) {
  const type = answer.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) return [await answer.json(), false];
  if (type.startsWith("text/")) return [await answer.text(), false];
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return [btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")), true];
}

/** One connection, and what came by it. `tell` gets what is to be passed on; `own` has classes of the program's. */
class Stream {
  constructor(options, tell, own) {
    this.options = options;
    this.tell = tell;
    this.own = own;
    this.wanted = new Map(); // what is asked for, and by how many
    this.places = new Map(); // what is asked for, and up to where it was received
    this.kept = new Map(); // topics, and their last updates
    this.delays = [];
    this.tries = 0;
    const transport = options.transport === "auto" ? "websocket" : options.transport;
    this.status = { state: "idle", transport, updates: 0, delayMs: null, polled: null };
    this.toldAt = 0;
  }

  want(asked) {
    const count = this.wanted.get(asked) ?? 0;
    this.wanted.set(asked, count + 1);
    if (count === 0) this.change(asked, "subscribe");
  }

  leave(asked) {
    const count = (this.wanted.get(asked) ?? 0) - 1;
    if (count > 0) return this.wanted.set(asked, count);
    if (!this.wanted.delete(asked)) return;
    this.places.delete(asked);
    const isWanted = (topic) => [...this.wanted.keys()].some((other) => matches(other, topic));
    for (const topic of this.kept.keys()) if (!isWanted(topic)) this.kept.delete(topic);
    this.change(asked, "unsubscribe");
  }

  /** What is asked for has changed. A WebSocket is told; a stream of events, and polls, begin anew. */
  change(asked, what) {
    if (this.wanted.size === 0) return this.close();
    if (!this.link) return this.open();
    if (this.status.transport === "websocket") {
      if (this.isGreeted) this.command({ [what]: this.asking(asked, what) }, asked);
    } else {
      clearTimeout(this.pause);
      this.pause = setTimeout(() => this.open(), 20);
    }
  }

  open() {
    this.close();
    this.is("connecting");
    if (this.status.transport === "websocket") this.openSocket();
    else if (this.status.transport === "events") this.openEvents();
    else this.openPolls();
  }

  close() {
    clearTimeout(this.pause);
    const link = this.link;
    this.link = null;
    this.isGreeted = false;
    if (link) {
      link.onclose = link.onmessage = null;
      link.onerror = () => {}; // an end before it was open is no fault
      link.close();
    }
    if (this.wanted.size === 0) this.is("idle");
  }

  /** The connection is gone. Many lose it at once, so each comes back at a moment of its own. */
  retry() {
    this.close();
    // Who never got through may sit behind a proxy that knows no WebSockets.
    if (++this.tries >= 3 && !this.wasOpen && this.options.transport === "auto") {
      const other = this.status.transport === "websocket" ? "events" : "websocket";
      if (classOf(this.own, other)) this.status.transport = other;
    }
    const most = Math.min(RETRY_MS.most, RETRY_MS.least * 2 ** Math.min(this.tries, 6));
    this.is("waiting");
    this.pause = setTimeout(() => this.open(), RETRY_MS.least / 2 + Math.random() * most);
  }

  opened() {
    this.tries = 0;
    this.wasOpen = true;
    this.openedAt = Date.now();
    this.is("open");
  }

  openSocket() {
    const url = new URL(this.options.socket, this.options.base);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.link = new (classOf(this.own, "websocket"))(url);
    this.asked = new Map(); // commands that wait for their replies
    this.number = 0;
    this.link.onopen = () => this.command({ connect: this.options.token ? { token: this.options.token } : {} });
    this.link.onmessage = ({ data }) => {
      for (const line of data.split("\n")) this.hear(JSON.parse(line));
    };
    this.link.onerror = () => {}; // its end follows
    this.link.onclose = () => this.retry();
  }

  command(command, asked) {
    const id = ++this.number;
    this.asked.set(id, asked);
    this.link.send(JSON.stringify({ id, ...command }));
  }

  asking(channel, what) {
    const place = this.places.get(channel);
    return what === "subscribe" && place ? { channel, recover: true, ...place } : { channel };
  }

  /** One reply or push of Centrifugo's protocol. */
  hear({ id, push, connect, subscribe, error }) {
    if (push?.pub) return this.hearPush(push.channel, push.pub);
    if (push?.message) return this.tell({ gap: { topic: push.channel, ...push.message.data } });
    if (id === undefined) return this.link.send("{}");
    const asked = this.asked.get(id);
    this.asked.delete(id);
    if (connect) {
      this.isGreeted = true;
      for (const asked of this.wanted.keys()) this.command({ subscribe: this.asking(asked, "subscribe") }, asked);
      this.opened();
    } else if (subscribe && this.wanted.has(asked)) {
      this.begins(subscribe.epoch);
      this.places.set(asked, { epoch: subscribe.epoch, offset: subscribe.offset });
    } else if (error?.temporary) {
      this.retry();
    } else if (error) {
      this.tell({ fault: { topic: asked, code: error.code, message: error.message } });
    }
  }

  hearPush(topic, { data, offset, tags = {} }) {
    for (const [asked, place] of this.places) if (matches(asked, topic)) place.offset = offset;
    this.update({ topic, data, number: offset, deleted: tags.deleted === "1", base64: tags.base64 === "1" });
  }

  openEvents() {
    const url = new URL(this.options.events, this.options.base);
    for (const asked of this.wanted.keys()) url.searchParams.append("topic", asked);
    this.link = new (classOf(this.own, "events"))(url, { withCredentials: this.options.credentials });
    this.link.onopen = () => this.opened();
    this.link.onmessage = (event) => this.hearEvent(event);
    for (const type of this.options.types) this.link.addEventListener(type, (event) => this.hearEvent(event));
    this.link.addEventListener("gap", ({ data }) => this.tell({ gap: JSON.parse(data) }));
    this.link.onerror = () => {
      // A browser comes back by itself, but not after a refusal.
      if (this.link.readyState === 2) this.retry();
      else this.is("connecting");
    };
  }

  hearEvent({ data, lastEventId, type }) {
    const [, epoch, number] = /^#([0-9a-f]+)-(\d+)$/.exec(lastEventId) ?? [];
    if (epoch) this.begins(epoch);
    const update = { deleted: false, base64: false, ...JSON.parse(data), number: number && Number(number) };
    this.update(type === "message" ? update : { ...update, type });
  }

  /**
   * Asks for each topic every so often. A browser that has a value already says which one, and gets what is different:
   * where nothing is, nothing.
   */
  openPolls() {
    const ends = new AbortController();
    const cost = this.watchCost();
    this.link = {
      close() {
        ends.abort();
        cost?.disconnect();
      },
    };
    const round = async () => {
      try {
        for (const topic of [...this.wanted.keys()]) await this.poll(topic, ends.signal);
      } catch {
        if (!ends.signal.aborted) this.retry();
        return;
      }
      if (ends.signal.aborted) return;
      if (this.status.state !== "open") this.opened();
      // Those that began together do not go on together.
      this.pause = setTimeout(round, this.options.every * (0.9 + Math.random() * 0.2));
    };
    round();
  }

  async poll(topic, signal) {
    const path = topic.split("/").map(encodeURIComponent).join("/");
    const { token, credentials, base } = this.options;
    const answer = await fetch(new URL(this.options.poll + path, base), {
      signal,
      cache: "no-cache", // else a browser may give the answer before the last, and ask behind the scenes
      credentials: credentials ? "include" : "same-origin",
      headers: token ? { Authorization: `Bearer ${token}` } : {},
    });
    if (answer.status === 429 || answer.status >= 500) throw new Error(answer.statusText);
    const [, epoch, number] = /^(?:W\/)?"([0-9a-f]+)-(\d+)/.exec(answer.headers.get("etag") ?? "") ?? [];
    if (answer.ok) {
      const [data, base64] = await valueOf(answer);
      if (signal.aborted) return;
      if (epoch) this.begins(epoch);
      this.update({ topic, data, number: number && Number(number), deleted: false, base64 });
    } else if (answer.status === 404) {
      const last = this.kept.get(topic)?.at(-1);
      if (last && !last.deleted) this.update({ topic, data: null, deleted: true, base64: false });
    } else {
      this.tell({ fault: { topic, code: answer.status, message: (await answer.text()).trim() } });
    }
  }

  /** What the last poll cost, where the platform says so. */
  watchCost() {
    if (typeof PerformanceObserver === "undefined") return undefined;
    const base = new URL(this.options.poll, this.options.base).href;
    const observer = new PerformanceObserver((list) => {
      const entry = list.getEntries().findLast(({ name, transferSize }) => name.startsWith(base) && transferSize > 0);
      if (!entry) return;
      this.status.polled = { bytes: Math.max(0, entry.transferSize - HEAD_BYTES), of: entry.decodedBodySize };
      this.tell({ status: { ...this.status } });
    });
    observer.observe({ type: "resource" });
    return observer;
  }

  /** Numbers of another epoch say nothing of those before. */
  begins(epoch) {
    if (epoch !== this.epoch) this.kept.clear();
    this.epoch = epoch;
  }

  update(update) {
    const kept = this.kept.get(update.topic) ?? [];
    // What begins anew brings what is known already.
    if (update.number <= kept.at(-1)?.number) return;
    this.kept.set(update.topic, [...kept.slice(1 - this.options.keep || kept.length), update]);
    this.status.updates += 1;
    const sent = this.options.sent && update.data?.[this.options.sent];
    if (typeof sent === "number" && Date.now() - this.openedAt > SNAPSHOT_MS) {
      this.delays = [...this.delays.slice(1 - DELAYS), Math.max(0, Date.now() - sent)];
      this.status.delayMs = [...this.delays].sort((one, other) => one - other)[this.delays.length >> 1];
    }
    this.tell({ update });
    this.is(this.status.state);
  }

  is(state) {
    const isSame = state === this.status.state;
    this.status.state = state;
    if (isSame && Date.now() - this.toldAt < STATUS_MS) return;
    this.toldAt = Date.now();
    this.tell({ status: { ...this.status } });
  }

  /** What a newcomer gets that came before it. */
  keptFor(asked) {
    return [...this.kept].filter(([topic]) => matches(asked, topic)).flatMap(([, updates]) => updates);
  }
}

/** The pages that share one stream: the worker's side. */
class Pages {
  constructor(own = {}) {
    this.own = own;
    this.streams = new Map();
  }

  add(port) {
    let stream;
    const asked = [];
    const pass = (message) => {
      const { update, gap } = message;
      const topic = (update ?? gap)?.topic;
      if (topic === undefined || asked.some((own) => matches(own, topic))) port.postMessage(message);
    };
    port.onmessage = ({ data: { options, want, leave, bye } }) => {
      if (options) stream = this.stream(options, pass);
      if (want !== undefined) {
        asked.push(want);
        for (const update of stream.keptFor(want)) port.postMessage({ update });
        stream.want(want);
        port.postMessage({ status: { ...stream.status } });
      }
      if (leave !== undefined && asked.includes(leave)) {
        asked.splice(asked.indexOf(leave), 1);
        stream.leave(leave);
      }
      if (bye) {
        for (const own of asked.splice(0)) stream.leave(own);
        stream.listeners.delete(pass);
      }
    };
  }

  stream(options, pass) {
    const name = JSON.stringify(options);
    let stream = this.streams.get(name);
    if (!stream) {
      const listeners = new Set();
      stream = new Stream(options, (message) => listeners.forEach((listener) => listener(message)), this.own);
      stream.listeners = listeners;
      this.streams.set(name, stream);
    }
    stream.listeners.add(pass);
    return stream;
  }
}

/** Where this file is by itself, its address. A bundle of it and other files is no shared worker. */
const OWN = new URL(import.meta.url);
const isAlone = OWN.pathname.endsWith("/live.js");

/** The address that a server's are counted from: this file's, or where a bundler has put a path there, the page's. */
function origin() {
  return OWN.protocol.startsWith("http") ? new URL("./", OWN).href : globalThis.location?.href;
}

/** What a page has of it. */
class Live {
  constructor({ WebSocket, EventSource, ...given }) {
    this.own = { WebSocket, EventSource };
    this.options = {
      base: origin(), socket: "/ws", events: "/events", poll: "/live/", every: 10_000, transport: "auto", types: [],
      keep: 1, sent: null, token: null,
      credentials: false, share: true, worker: isAlone ? OWN.href : null, ...given,
    };
    if (!this.options.base) throw new TypeError("live: `base` is missing, such as https://www.example.org/");
    this.options.transport = transportOf(this.options.transport, this.own);
    this.watchers = new Set();
    this.status = { state: "idle", transport: this.options.transport, updates: 0, delayMs: null, polled: null, isShared: false };
    this.connect();
    // A page that is put aside by its browser may come back.
    globalThis.addEventListener?.("pagehide", () => this.port.postMessage({ bye: true }));
    globalThis.addEventListener?.("pageshow", ({ persisted }) => {
      if (persisted) this.greet(this.port, this.status.isShared);
    });
  }

  /** By the worker that pages share, or alone where there is none. A class cannot be passed on to a worker. */
  connect() {
    const { share, worker: file } = this.options;
    const hasOwn = Object.values(this.own).some(Boolean);
    if (!share || !file || hasOwn || typeof SharedWorker === "undefined") return this.alone();
    try {
      const worker = new SharedWorker(file, { type: "module", name: "live" });
      worker.onerror = () => {
        worker.onerror = null;
        this.alone();
      };
      this.greet(worker.port, true);
    } catch {
      this.alone();
    }
  }

  alone() {
    const channel = new MessageChannel();
    new Pages(this.own).add(channel.port1);
    this.greet(channel.port2, false);
  }

  greet(port, isShared) {
    // A worker that failed may have begun: it is left, for two would tell each update twice.
    if (this.port && this.port !== port) {
      this.port.onmessage = null;
      this.port.postMessage({ bye: true });
    }
    this.port = port;
    this.status.isShared = isShared;
    const { share, worker, ...options } = this.options;
    port.onmessage = ({ data }) => this.hear(data);
    port.postMessage({ options });
    for (const { topics } of this.watchers) for (const want of topics) port.postMessage({ want });
  }

  hear({ update, status, gap, fault }) {
    if (status) {
      Object.assign(this.status, status);
      this.onstatus?.(this.status);
    }
    if (gap) this.ongap?.(gap);
    if (fault) this.onfault?.(fault);
    if (!update) return;
    for (const { topics, tell } of [...this.watchers]) {
      if (topics.some((asked) => matches(asked, update.topic))) tell(update);
    }
  }

  /** Calls `tell` with each update of these topics: `{topic, data, number, deleted, base64}`. Gives what ends that. */
  watch(topics, tell) {
    const watcher = { topics: [topics].flat(), tell };
    this.watchers.add(watcher);
    for (const want of watcher.topics) this.port.postMessage({ want });
    return () => {
      if (!this.watchers.delete(watcher)) return;
      for (const leave of watcher.topics) this.port.postMessage({ leave });
    };
  }
}

/**
 * Live data of the server that this file came from. Options: `transport` (`auto`: a WebSocket, else server-sent
 * events; or `websocket`, `events`, `poll`), `every` (milliseconds between polls), `types` (of events that are listened to; without WebSocket), `keep` (updates of
 * each topic that a late tab gets), `sent` (the member of a value that says when it was published, in milliseconds
 * since 1970: then `status.delayMs` is told), `token`, `credentials`, `share` (`false`: a connection of this page), `base` (the
 * server, where that is not this file's), `worker` (the address of this file where it is part of a bundle), `WebSocket` and
 * `EventSource` (classes to connect by, where the platform has none).
 */
export function live(options = {}) {
  return new Live(options);
}

if (typeof SharedWorkerGlobalScope !== "undefined" && self instanceof SharedWorkerGlobalScope) {
  const pages = new Pages();
  self.onconnect = ({ ports: [port] }) => pages.add(port);
}
