// Types of `/live.js`, and of the package `staunch-live`, which is the same file. A page that imports `/live.js` has
// them by `declare module "/live.js" { export * from "staunch-live"; }`, or by a copy beside it as `live.d.ts`.

/** What a value may be: JSON as it was published, a text, bytes in base64 (`base64`), `null` where it has ended. */
export interface Update<T = unknown> {
  topic: string;
  data: T;
  /** Its place in the numbering of all updates; not there where its publisher gave it an id of its own. */
  number?: number;
  /** The topic's value has ended. */
  deleted: boolean;
  /** `data` are bytes in base64. */
  base64: boolean;
  /** The type of an event, by server-sent events alone. */
  type?: string;
}

export interface Status {
  state: "idle" | "connecting" | "open" | "waiting";
  transport: "auto" | "websocket" | "events" | "poll";
  /** How many updates came. */
  updates: number;
  /** The median of the last 32, where `sent` names a member. */
  delayMs: number | null;
  /** Bytes of the body of the last poll as they were sent, and of the value; where the platform says so. */
  polled: { bytes: number; of: number } | null;
  /** Whether the tabs of the origin share the connection. */
  isShared: boolean;
}

/** So much of a log was lost. */
export interface Gap {
  topic: string;
  missed: number;
  at_least?: boolean;
}

/** A channel that cannot be read. */
export interface Fault {
  topic: string;
  code: number;
  message: string;
}

export interface Options {
  /**
   * The URL that `socket`, `events` and `poll` are counted from: the folder of `/live.js` if it is not said. It has to be said
   * outside of browsers, and where the file comes from another host than the data.
   */
  base?: string;
  /** The path of the WebSocket: `/ws`. */
  socket?: string;
  /** The path of the streams of events: `/events`. */
  events?: string;
  /** The path of polled values: `/live/`. */
  poll?: string;
  /** `poll` asks for each topic now and then; patterns cannot be polled. */
  transport?: "auto" | "websocket" | "events" | "poll";
  /** Milliseconds between two polls: 10 000. */
  every?: number;
  /** Types of events that are listened to, without WebSocket. */
  types?: string[];
  /** Updates of each topic that a late tab gets: 1. */
  keep?: number;
  /** The member of a value that says when it was published, in milliseconds since 1970. */
  sent?: string | null;
  token?: string | null;
  credentials?: boolean;
  /** `false`: a connection of this page alone. */
  share?: boolean;
  /**
   * The URL of the script of the shared worker, of the page's own origin: this very file. In a bundle it has to be
   * said, `/live.js` where the server is Staunch; else a page has a connection of its own there.
   */
  worker?: string | null;
  /** The class of WebSockets where the platform has none, such as that of the package `ws` in Node before version 22. */
  WebSocket?: new (url: URL) => unknown;
  /** The class of streams of events where the platform has none, such as that of the package `eventsource`. */
  EventSource?: new (url: URL, init?: { withCredentials?: boolean }) => unknown;
}

export interface Live {
  readonly status: Status;
  onstatus?: (status: Status) => void;
  ongap?: (gap: Gap) => void;
  onfault?: (fault: Fault) => void;
  /** Calls `tell` with each update of these topics or patterns. Gives what ends that. */
  watch<T = unknown>(topics: string | string[], tell: (update: Update<T>) => void): () => void;
}

/** Live data of the server that `/live.js` came from. */
export function live(options?: Options): Live;

/** Whether a topic is what was asked for: its name, or a pattern such as `b.*`, `b.>` or `*`. */
export function matches(asked: string, topic: string): boolean;
