// What the pages with live data have in common: how they begin, and how they tell of their connection.

const STATES = {
  idle: "Nothing is watched.",
  connecting: "Connecting.",
  open: "Connected.",
  waiting: "The server does not answer. Trying again.",
};

/** Writes a text to the place of that name. */
export function show(name, text) {
  const place = document.querySelector(`[data-live="${name}"]`);
  if (place.textContent !== text) place.textContent = text;
}

/** Points of a line through the last values in a box of 300 by 60: all of it, unless there are fewer than `count`. */
export function points(values, least, most, count) {
  const step = 300 / (Math.max(values.length, count) - 1);
  const height = (value) => 57 - ((value - least) / (most - least || 1)) * 54;
  return values.map((value, place) => `${(place * step).toFixed(1)},${height(value).toFixed(1)}`);
}

/** Watches topics, and shows the page once something came. Says so where there is no live data. */
export async function watch(topics, options, tell) {
  const note = document.getElementById("live-note");
  let live;
  try {
    ({ live } = await import("/live.js"));
  } catch {
    note.textContent =
      "This server serves no live data. Started with --live on, and fed by staunch publish --demo, it shows it here.";
    return;
  }
  const data = live({ sent: "at", ...options });
  data.onstatus = ({ state, transport, delayMs, isShared }) => {
    const way = transport === "websocket" ? "WebSocket" : "server-sent events";
    show("state", state === "open" ? `Connected by ${way}${isShared ? ", shared by all tabs" : ""}.` : STATES[state]);
    show("delay", delayMs === null || state !== "open" ? "" : `${Math.round(delayMs)} ms after it was published.`);
    document.getElementById("live").dataset.state = state;
  };
  data.watch(topics, (update) => {
    note.hidden = true;
    document.getElementById("live").hidden = false;
    if (update.data) tell(update);
  });
}

/** Polls a topic, and tells what the last poll cost as it was sent, and how long the value is. */
export async function poll(topic, everyMs, tell) {
  let live;
  try {
    ({ live } = await import("/live.js"));
  } catch {
    return; // `watch` says so
  }
  const data = live({ transport: "poll", every: everyMs });
  let value;
  const told = () => value && data.status.polled && tell(value, data.status.polled);
  data.onstatus = told;
  data.watch([topic], (update) => {
    value = update.data;
    told();
  });
}
