// A headless Chromium and its pages, driven over a pipe (DevTools protocol, JSON messages that end with NUL).
//
// Owns the process and its profile: both are gone after `close`. Knows nothing of what is tested.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--disable-dev-shm-usage", "--remote-debugging-pipe",
];

/** A wait longer than this is a failure, not a result: it only keeps a broken run from hanging. */
const PATIENCE_MS = 30_000;

/**
 * Of views that are wide and narrow, light and dark: two that show each of that once, or all if STAUNCH_VIEWS says so.
 * Colours do not depend on the width, nor widths on the colours.
 */
export function chosen(views) {
  if (process.env.STAUNCH_VIEWS === "all") return views;
  return views.filter(({ name }) => name === "wide-light" || name === "narrow-dark");
}

export class Browser {
  /** `more` are flags of this run alone. */
  static async start(program, more = []) {
    const profile = await mkdtemp(join(tmpdir(), "staunch-browser-"));
    const child = spawn(program, [...FLAGS, ...more, `--user-data-dir=${profile}`, "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    return new Browser(child, profile);
  }

  constructor(child, profile) {
    this.child = child;
    this.profile = profile;
    this.waiting = new Map();
    this.pages = new Map();
    this.number = 0;
    this.exit = once(child, "exit");
    let rest = "";
    child.stdio[4].setEncoding("utf8").on("data", (text) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      for (const message of messages) this.receive(JSON.parse(message));
    });
    const fail = (error) => {
      for (const { reject } of this.waiting.values()) reject(error);
      this.waiting.clear();
    };
    child.on("error", fail);
    child.on("exit", (code, signal) => fail(new Error(`the browser ended (${code ?? signal})`)));
    child.stdio[3].on("error", () => {});
  }

  receive({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      this.pages.get(sessionId)?.event(method, params);
      return;
    }
    const { resolve, reject } = this.waiting.get(id) ?? {};
    this.waiting.delete(id);
    if (error) reject?.(new Error(error.message));
    else resolve?.(result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.number;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return patience(answer, method);
  }

  /** Opens an empty page that looks `width` points wide and prefers `scheme` (light or dark). */
  async page({ width, height, scheme, scripts = true }) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    this.pages.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    const metrics = { width, height, deviceScaleFactor: 1, mobile: width < 600 };
    await page.send("Emulation.setDeviceMetricsOverride", metrics);
    await page.send("Emulation.setEmulatedMedia", {
      features: [
        { name: "prefers-color-scheme", value: scheme },
        { name: "prefers-reduced-motion", value: "reduce" },
      ],
    });
    if (!scripts) await page.send("Emulation.setScriptExecutionDisabled", { value: true });
    return page;
  }

  async close() {
    await this.send("Browser.close").catch(() => this.child.kill("SIGKILL"));
    await this.exit;
    await rm(this.profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

class Page {
  constructor(browser, sessionId, targetId) {
    Object.assign(this, { browser, sessionId, targetId, complaints: [], requests: [], failures: [], loaded: () => {} });
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  /** Whatever a person would see in red in the console is kept as a complaint, what was asked for, and why it failed. */
  event(method, params) {
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    if (method === "Network.loadingFailed") this.failures.push(params.errorText);
    if (method === "Page.loadEventFired") this.loaded();
    if (method === "Runtime.exceptionThrown") {
      const details = params.exceptionDetails;
      this.complaints.push(details.exception?.description ?? details.text);
    }
    if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) {
      this.complaints.push(params.args.map((value) => value.value ?? value.description).join(" "));
    }
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) {
      this.complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    }
  }

  /** Opens an address and waits until all of the page is there. */
  async open(url) {
    const loaded = new Promise((resolve) => (this.loaded = resolve));
    const { errorText } = await this.send("Page.navigate", { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    await patience(loaded, `load ${url}`);
  }

  /** Does what leads to another page, and waits for it. */
  async leave(expression) {
    const loaded = new Promise((resolve) => (this.loaded = resolve));
    await this.evaluate(expression);
    await patience(loaded, `load after ${expression}`);
  }

  /** The value of an expression (or of its promise) in the page. */
  async evaluate(expression) {
    const parameters = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", parameters);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until an expression is true. */
  async until(expression) {
    const give_up = Date.now() + PATIENCE_MS;
    while (!(await this.evaluate(expression))) {
      if (Date.now() > give_up) throw new Error(`never true: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async press(key, code) {
    for (const type of ["keyDown", "keyUp"]) {
      await this.send("Input.dispatchKeyEvent", { type, key, code: key, windowsVirtualKeyCode: code });
    }
  }

  /** A picture of the whole page, as a PNG file. */
  async picture(path) {
    const parameters = { format: "png", captureBeyondViewport: true };
    const { data } = await this.send("Page.captureScreenshot", parameters);
    await writeFile(path, data, "base64");
  }

  async close() {
    this.browser.pages.delete(this.sessionId);
    await this.browser.send("Target.closeTarget", { targetId: this.targetId });
  }
}

function patience(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer: ${what}`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
