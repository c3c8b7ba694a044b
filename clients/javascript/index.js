// The client of the HTTP API of ctxtool serve. Its types, in index.d.ts, are those of api/openapi.yaml.

/** An error that the server reported: a problem document of RFC 9457. `code` is for programs. */
export class Problem extends Error {
  constructor(document) {
    super(document.detail || document.title);
    this.name = "Problem";
    Object.assign(this, document);
  }
}

/** What a request resolves to, or undefined if the server does not find what it names. */
export async function orMissing(request) {
  try {
    return await request;
  } catch (e) {
    if (e instanceof Problem && e.code === "not_found") return undefined;
    throw e;
  }
}

/** The code with which the server ends the events of a removed context. */
const closeRemoved = 4002;

export class Client {
  #url;
  #token;
  #fetch;
  #WebSocket;

  constructor({ url, token, fetch = globalThis.fetch, WebSocket = globalThis.WebSocket }) {
    this.#url = new URL(url).origin;
    this.#token = token;
    this.#fetch = fetch;
    this.#WebSocket = WebSocket;
  }

  /** Send a request. It resolves to the JSON of the answer, to an iterator over its lines, or to the Response. */
  async request(method, path, { path: names, query, headers, body, lines, raw, type, signal } = {}) {
    const init = { method: method.toUpperCase(), headers: { Authorization: `Bearer ${this.#token}`, ...headers }, signal };
    if (lines) [init.body, type] = [lines.map((line) => JSON.stringify(line) + "\n").join(""), "application/x-ndjson"];
    else if (body !== undefined) [init.body, type] = [JSON.stringify(body), "application/json"];
    else if (raw !== undefined) init.body = raw;
    if (init.body !== undefined) init.headers["Content-Type"] = type ?? "application/octet-stream";
    const response = await this.#fetch(this.#address(path, names, query), init);
    const media = (response.headers.get("Content-Type") ?? "").split(";")[0];
    if (media === "application/problem+json") throw new Problem(await response.json());
    if (!response.ok && response.status !== 304) {
      await response.body?.cancel();
      throw new Problem({ status: response.status, code: "internal", title: response.statusText, detail: `status ${response.status}` });
    }
    if (media === "application/json") return response.json();
    if (media === "application/x-ndjson") return linesOf(response);
    if (response.status === 204) return undefined;
    return response;
  }

  /** Make an empty branch, unless the context has it. */
  async ensureBranch(context, name) {
    await this.request("post", "/v1/contexts/{context}/branches", { path: { context }, body: { name, empty: true } }).catch((e) => {
      if (e.code !== "exists") throw e;
    });
  }

  #address(path, names = {}, query = {}) {
    const url = new URL(path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name])), this.#url);
    for (const [name, value] of Object.entries(query)) {
      for (const v of Array.isArray(value) ? value : [value]) if (v !== undefined) url.searchParams.append(name, v);
    }
    return url;
  }

  /**
   * Follow a context: the events of each commit after the one with the number `after` once, in order. If the connection
   * ends, it connects again and goes on where it was. After ten failures without a sign of life between, about a minute, it
   * throws the last one. If the context is removed, it throws a Problem with the code "not_found". Without `after`, it
   * begins now.
   */
  async *follow(context, { after, signal } = {}) {
    if (!this.#WebSocket) throw new Error("there is no WebSocket: Node has it from version 22 on; before, pass one to Client");
    for (let failures = 0; ;) {
      try {
        const pending = []; // of a commit whose other events have not come yet
        for await (const event of this.#connect(context, after, signal)) {
          if (event.record === "ready") {
            after ??= event.seq;
            continue;
          }
          failures = 0;
          if (event.record === "heartbeat" || (pending.push(event), event.more)) continue;
          after = Math.max(after ?? 0, event.seq);
          yield* pending.splice(0);
        }
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof Problem || ++failures > 10) throw error;
        await pause(Math.min(100 * 2 ** failures, 10_000), signal);
        await this.request("get", "/v1/contexts/{context}", { path: { context }, signal }).catch((e) => {
          if (signal?.aborted || (e instanceof Problem && e.status < 500)) throw e; // a WebSocket does not say why it fails
        });
      }
    }
  }

  /** Yield the events of one connection. It ends with an error. */
  async *#connect(context, after, signal) {
    signal?.throwIfAborted();
    const address = this.#address("/v1/contexts/{context}/events", { context }, { after });
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new this.#WebSocket(address, ["ctxdir.v1", `ctxdir.token.${this.#token}`]);
    const events = [];
    let wake, error;
    const end = (e) => ((error ??= e), wake?.());
    const abort = () => end(signal.reason);
    socket.onmessage = ({ data }) => (events.push(data), wake?.());
    socket.onerror = () => end(new Error("the connection failed"));
    socket.onclose = ({ code, reason }) => end(code === closeRemoved
      ? new Problem({ code: "not_found", status: 404, title: "Removed", detail: "the context was removed" })
      : new Error(`the connection ended: ${code} ${reason}`));
    signal?.addEventListener("abort", abort);
    try {
      for (;;) {
        while (events.length) yield JSON.parse(events.shift());
        if (error) throw error;
        await new Promise((resolve) => (wake = resolve));
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      socket.onmessage = socket.onerror = socket.onclose = null;
      socket.addEventListener("error", () => {}); // closing before the connection is there is one
      socket.close();
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => (clearTimeout(timer), reject(signal.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", abort), resolve()), milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Yield the JSON of each line of an answer. */
async function* linesOf(response) {
  let begun = [];
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = text.split("\n");
    for (const part of parts.slice(0, -1)) {
      begun.push(part);
      const line = begun.join("");
      begun = [];
      if (line) yield JSON.parse(line);
    }
    begun.push(parts.at(-1));
  }
}
