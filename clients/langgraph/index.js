// The checkpoints of LangGraph.js in a store of ctxdir: see README.md.
import { randomUUID } from "node:crypto";
import { BaseCheckpointSaver, TASKS, copyCheckpoint, getCheckpointId, maxChannelVersion } from "@langchain/langgraph-checkpoint";
import { Client, Problem, orMissing } from "@ctxdir/client";
import { Course, load } from "./delta.js";

const kind = "langgraph";
const messages = "/v1/contexts/{context}/branches/{branch}/messages";

// Some file systems ignore the case of letters, so the name of a branch has small letters only.
const escape = (s) => s.replace(/[^a-z0-9_.:|-]/g, (c) =>
  /[A-Z]/.test(c) ? "!" + c.toLowerCase() : "!~" + c.charCodeAt(0).toString(16).padStart(4, "0"));
const unescape = (s) => s.replace(/!~([0-9a-f]{4})|!([a-z])/g, (_, code, c) => c?.toUpperCase() ?? String.fromCharCode(parseInt(code, 16)));

const configOf = (thread_id, checkpoint_ns, checkpoint_id) => ({ configurable: { thread_id, checkpoint_ns, checkpoint_id } });

/** A thread is a context, a namespace of it is a branch. A copy of a thread is a fork of its branches, in the same context. */
export class CtxdirSaver extends BaseCheckpointSaver {
  #client;
  #app;
  #cacheBytes;
  #places = new Map(); // by thread: its context, and how the names of its branches begin
  #courses = new Map(); // by context and branch, those used last at the end
  #queues = new Map(); // by thread and namespace: the end of what waits

  constructor({ client, app = "", cacheBytes = 64 << 20, ...options }, serde) {
    super(serde);
    this.#client = client ?? new Client(options);
    this.#app = app && encodeURIComponent(app) + "/";
    this.#cacheBytes = cacheBytes;
  }

  async getTuple(config) {
    const { thread_id: thread, checkpoint_ns: ns = "" } = config.configurable ?? {};
    if (thread === undefined) return undefined;
    const course = await this.#queue(thread, ns, () => this.#read(thread, ns));
    const id = getCheckpointId(config) || [...(course?.checkpoints.keys() ?? [])].sort().at(-1);
    return course?.checkpoints.has(id) ? this.#tuple(course, thread, ns, id) : undefined;
  }

  async *list(config, { limit = Infinity, before, filter = {} } = {}) {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    for await (const thread of thread_id === undefined ? this.#threads() : [thread_id]) {
      for (const ns of (await this.#namespaces(thread)).values()) {
        if (checkpoint_ns !== undefined && ns !== checkpoint_ns) continue;
        const course = await this.#queue(thread, ns, () => this.#read(thread, ns));
        for (const id of [...(course?.checkpoints.keys() ?? [])].sort().reverse()) {
          if ((checkpoint_id && id !== checkpoint_id) || (before && id >= getCheckpointId(before))) continue;
          if (limit <= 0) return;
          const tuple = await this.#tuple(course, thread, ns, id);
          if (Object.entries(filter).some(([key, value]) => tuple.metadata[key] !== value)) continue;
          limit--;
          yield tuple;
        }
      }
    }
  }

  async put(config, checkpoint, metadata, newVersions = checkpoint.channel_versions) {
    const { thread_id: thread, checkpoint_ns: ns = "", checkpoint_id: parent } = config.configurable ?? {};
    if (thread === undefined) throw new Error(`put: "configurable" has no "thread_id"`);
    const copy = copyCheckpoint(checkpoint);
    const channels = Object.keys(newVersions).filter((channel) => Object.hasOwn(copy.channel_values, channel));
    const all = [metadata, ...channels.map((c) => copy.channel_values[c])];
    const [written, ...typed] = await Promise.all(all.map((v) => this.serde.dumpsTyped(v)));
    const values = Object.fromEntries(channels.map((c, i) => [c, typed[i]]));
    const course = await this.#append(thread, ns, (c) => c.checkpoint(parent, copy, written, newVersions, values));
    course.keep(parent, checkpoint.id, values);
    return configOf(thread, ns, checkpoint.id);
  }

  async putWrites(config, writes, task, path) {
    const { thread_id: thread, checkpoint_ns: ns = "", checkpoint_id: id } = config.configurable ?? {};
    if (thread === undefined || id === undefined) throw new Error(`putWrites: "configurable" has no "thread_id" or "checkpoint_id"`);
    const values = await Promise.all(writes.map(async ([channel, v]) => [channel, await this.serde.dumpsTyped(v)]));
    await this.#append(thread, ns, (course) => course.pending(id, task, path, values));
  }

  /** Delete a thread. Copies of it stay. */
  async deleteThread(thread) {
    const place = await this.#place(thread);
    if (!place) return;
    const { context } = place;
    const names = await this.#namespaces(thread);
    const { branches } = (await this.#request("get", "/v1/contexts/{context}/branches", { path: { context } }));
    const rest = branches.filter((b) => !names.has(b.name) && (b.messages || b.name !== "main"));
    this.#places.delete(thread);
    const remove = (c) => orMissing(this.#request("delete", "/v1/contexts/{context}", { path: { context: c } }));
    if (!rest.length) await remove(context);
    else if (names.size) {
      const changes = [{ op: "switch", branch: rest[0].name }, ...[...names.keys()].map((branch) => ({ op: "remove_branch", branch }))];
      await this.#request("post", "/v1/contexts/{context}/commit", { path: { context }, body: { changes } });
    }
    if (place.copy) await remove(place.copy);
  }

  /** Make a thread that begins as another one. It stores no checkpoint again. */
  async copyThread(source, target) {
    const place = await this.#place(source);
    const names = place && (await this.#namespaces(source));
    if (!names?.size) throw new Error(`there is no thread ${source}`);
    if (await this.#place(target)) throw new Error(`the thread ${target} exists already`);
    const { context } = place;
    const changes = [...names].map(([from, ns]) => ({ op: "fork", branch: branchOf(`copy:${escape(target)}`, ns), from }));
    await this.#request("post", "/v1/contexts/{context}/commit", { path: { context }, body: { changes } });
    await this.#create(target, { of: context });
  }

  #request(...request) {
    return this.#client.request(...request);
  }

  /** Do one after the other what concerns a namespace. */
  #queue(thread, ns, f) {
    const key = JSON.stringify([thread, ns]);
    const result = (this.#queues.get(key) ?? Promise.resolve()).then(f);
    const end = result.catch(() => {}).finally(() => this.#queues.get(key) === end && this.#queues.delete(key));
    this.#queues.set(key, end);
    return result;
  }

  #externalID = (thread) => this.#app + encodeURIComponent(thread);

  async #create(thread, labels) {
    const body = { kind, external_id: this.#externalID(thread), title: thread, labels: { tool: kind, ...labels } };
    return this.#found(thread, await this.#request("post", "/v1/contexts", { query: { open: true }, body }));
  }

  async #place(thread) {
    const known = this.#places.get(thread);
    if (known) return known;
    const path = { context: `${kind}/${this.#externalID(thread)}` };
    const context = await orMissing(this.#request("get", "/v1/contexts/{context}", { path }));
    return context && this.#found(thread, context);
  }

  #found(thread, { id, labels }) {
    const place = labels?.of ? { context: labels.of, copy: id, prefix: `copy:${escape(thread)}` } : { context: id, prefix: "" };
    this.#places.set(thread, place);
    return place;
  }

  async *#threads() {
    for (let cursor; ;) {
      const query = { kind, sort: "created", limit: 1000, cursor };
      const { contexts, next } = await this.#request("get", "/v1/contexts", { query });
      for (const { external_id: id } of contexts) {
        if (id.startsWith(this.#app) && !id.slice(this.#app.length).includes("/")) yield decodeURIComponent(id.slice(this.#app.length));
      }
      if (!(cursor = next)) return;
    }
  }

  /** The namespaces of a thread, by branch. */
  async #namespaces(thread) {
    const place = await this.#place(thread);
    const path = { context: place?.context };
    const list = place && (await orMissing(this.#request("get", "/v1/contexts/{context}/branches", { path })));
    if (!list) this.#places.delete(thread);
    const names = list?.branches.filter((b) => b.messages).map((b) => [b.name, namespaceOf(place.prefix, b.name)]) ?? [];
    return new Map(names.filter(([, ns]) => ns !== undefined));
  }

  /** Read what a namespace has since it was read last; undefined if there is nothing. */
  async #read(thread, ns) {
    const place = await this.#place(thread);
    if (!place) return undefined;
    const branch = branchOf(place.prefix, ns);
    const key = `${place.context} ${branch}`;
    let course = this.#courses.get(key) ?? new Course();
    const from = Math.max(course.length - 1, 0); // the last record that is known shows that the branch is the same
    const path = { context: place.context, branch };
    const lines = await orMissing(this.#request("get", messages, { path, query: { from } }));
    this.#courses.delete(key);
    if (!lines) return void this.#places.delete(thread);
    let known = course.length > 0;
    for await (const line of lines) {
      if (known && line.id !== course.last) break;
      if (known) known = false;
      else if (line.message) course.add(line.message, line.id, JSON.stringify(line.message).length);
      else throw new Error(`the record at position ${line.position} of thread ${thread} is unavailable: ${line.unavailable}`);
    }
    if (known) return this.#read(thread, ns); // another branch of the same name
    return this.#keep(key, course);
  }

  #keep(key, course) {
    this.#courses.delete(key);
    this.#courses.set(key, course);
    let bytes = 0;
    for (const [k, c] of [...this.#courses].reverse()) if ((bytes += c.bytes) > this.#cacheBytes && c !== course) this.#courses.delete(k);
    return course;
  }

  /** Append the record that make returns, as one commit, at the end of the course that it is given. */
  #append(thread, ns, make) {
    return this.#queue(thread, ns, async () => {
      for (let attempt = 1; ; attempt++) {
        const { context, prefix } = (await this.#place(thread)) ?? (await this.#create(thread));
        const path = { context, branch: branchOf(prefix, ns) };
        const key = `${context} ${path.branch}`;
        const course = this.#courses.get(key) ?? (await this.#read(thread, ns)) ?? new Course();
        const message = make(course);
        if (!message) return course;
        const id = randomUUID();
        try {
          const query = { envelope: true, position: course.length };
          for await (const _ of await this.#request("post", messages, { path, query, lines: [{ id, message }] }));
          course.add(message, id, JSON.stringify(message).length);
          return this.#keep(key, course);
        } catch (e) {
          if (!(e instanceof Problem) || attempt === 20) throw e;
          if (e.code === "position") await this.#read(thread, ns); // another process appended
          else if (e.code !== "not_found") throw e;
          else if (this.#courses.delete(key), e.branch !== undefined) await this.#client.ensureBranch(context, path.branch);
          else this.#places.delete(thread); // another process deleted it
        }
      }
    });
  }

  async #tuple(course, thread, ns, id) {
    const c = course.checkpoints.get(id);
    const loaded = await Promise.all(Object.entries(c.values).map(async ([channel, node]) => [channel, await load(this.serde, node)]));
    const checkpoint = {
      v: c.v, id, ts: c.ts, channel_values: Object.fromEntries(loaded),
      channel_versions: { ...c.versions }, versions_seen: structuredClone(c.seen),
    };
    const writesOf = (of, only) => Promise.all(course.writes(of).filter((w) => !only || w.channel === only)
      .map(async (w) => [w.task, w.channel, await load(this.serde, w.node)]));
    if (c.v < 4 && c.parent) { // what was sent was with the writes
      checkpoint.channel_values[TASKS] = (await writesOf(c.parent, TASKS)).map((w) => w[2]);
      const versions = Object.values(c.versions);
      checkpoint.channel_versions[TASKS] = versions.length ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
    }
    const metadata = await load(this.serde, c.sealed ? { sealed: c.sealed } : { value: c.metadata });
    const tuple = { config: configOf(thread, ns, id), checkpoint, metadata, pendingWrites: await writesOf(id) };
    if (c.parent) tuple.parentConfig = configOf(thread, ns, c.parent);
    return tuple;
  }
}

function branchOf(prefix, ns) {
  if (!prefix) return ns ? `ns:${escape(ns)}` : "main";
  return ns ? `${prefix} ns:${escape(ns)}` : prefix;
}

function namespaceOf(prefix, branch) {
  if (branch === branchOf(prefix, "")) return "";
  const begin = prefix ? `${prefix} ns:` : "ns:";
  return branch.startsWith(begin) ? unescape(branch.slice(begin.length)) : undefined;
}
