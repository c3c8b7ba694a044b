// The saver against a real server: LangGraph's suite, and what the suite does not ask. CTXTOOL names the command.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, START, StateGraph, messagesStateReducer } from "@langchain/langgraph";
import { Client } from "@ctxdir/client";
import { CtxdirSaver } from "@ctxdir/langgraph";
import { ctxtool, serve } from "../javascript/serve.mjs";

const require = createRequire(import.meta.url);
let server;
before(async () => { server = await serve(); });
after(() => server.close());

const saverOf = (options) => new CtxdirSaver({ ...server, ...options });
const configOf = (thread_id, checkpoint_ns = "") => ({ configurable: { thread_id, checkpoint_ns } });
async function collect(all) {
  const list = [];
  for await (const one of all) list.push(one);
  return list;
}

test("LangGraph's suite passes", async (t) => {
  const report = join(server.dir, "report.json");
  const vitest = join(require.resolve("vitest/package.json"), "../vitest.mjs");
  const run = spawn(process.execPath, [vitest, "run", "--globals", "--reporter=json", `--outputFile=${report}`, "validation.spec.mjs"], {
    cwd: import.meta.dirname, stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, CTXDIR_URL: server.url, CTXDIR_TOKEN: server.token },
  });
  await once(run, "exit");
  const { testResults: [{ assertionResults: cases }] } = JSON.parse(await readFile(report, "utf8"));
  for (const { status, fullName, failureMessages } of cases) {
    if (status !== "passed") await t.test(fullName, () => assert.fail(`${status}: ${failureMessages}`));
  }
  const { version } = require("@langchain/langgraph-checkpoint-validation/package.json");
  const passed = cases.filter((c) => c.status === "passed").length;
  t.diagnostic(`pass ${passed} of ${cases.length} of @langchain/langgraph-checkpoint-validation ${version}`);
  assert.ok(cases.length > 700, `${cases.length} cases`);
});

/** A graph in which a model and its tool take turns until there are n messages. */
function agent(n, checkpointer) {
  const State = Annotation.Root({ messages: Annotation({ reducer: messagesStateReducer, default: () => [] }) });
  const long = (length) => `This is message ${length}, long enough to be worth a reference to it. `.repeat(3);
  return new StateGraph(State)
    .addNode("model", ({ messages: { length } }) => ({
      messages: [new AIMessage({ content: long(length), tool_calls: [{ id: `call-${length}`, name: "look", args: {} }] })],
    }))
    .addNode("tools", ({ messages: { length } }) => ({
      messages: [new ToolMessage({ content: long(length), tool_call_id: `call-${length - 1}` })],
    }))
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) => (messages.length < n ? "tools" : "__end__"))
    .addConditionalEdges("tools", ({ messages }) => (messages.length < n ? "model" : "__end__"))
    .compile({ checkpointer });
}

const question = () => ({ messages: [new HumanMessage({ content: "Where does the path begin, and how far is it? ".repeat(3) })] });

test("a graph goes on after the server was killed", async () => {
  const config = configOf("killed");
  const stopped = await agent(8, saverOf()).invoke(question(), { ...config, interruptBefore: ["tools"] });
  assert.equal(stopped.messages.length, 2);
  await server.kill();
  const saver = saverOf();
  const graph = agent(8, saver);
  const { messages } = await graph.invoke(null, config);
  assert.deepEqual(messages.map((m) => m.getType()), ["human", "ai", "tool", "ai", "tool", "ai", "tool", "ai"]);
  const states = await collect(graph.getStateHistory(config));
  assert.deepEqual(states.map((s) => s.values.messages?.length ?? 0), [8, 7, 6, 5, 4, 3, 2, 1, 0]);
  const texts = (await collect(await client().request("get", records, { path: { context: "langgraph/killed", branch: "main" } })))
    .map((line) => JSON.stringify(line.message));
  for (const { content } of messages) assert.equal(texts.filter((text) => text.includes(content)).length, 1, "a message is stored once");
  const early = await graph.invoke(null, states[4].config); // again from four messages on
  assert.deepEqual(early.messages.slice(0, 4), messages.slice(0, 4));
  assert.equal((await collect(saver.list(config))).length, 9 + 5); // LangGraph stores a checkpoint of the fork, too
});

const records = "/v1/contexts/{context}/branches/{branch}/messages";
const client = () => new Client(server);

test("a copy is a fork", async () => {
  const saver = saverOf({ app: "copies" });
  const graph = agent(4, saver);
  await graph.invoke(question(), configOf("One"));
  const path = { context: `langgraph/copies/One` };
  const count = async () => (await client().request("get", "/v1/contexts/{context}", { path })).messages;
  const before = await count();
  await saver.copyThread("One", "Two");
  assert.equal(await count(), before, "nothing is stored again");
  await assert.rejects(saver.copyThread("One", "Two"), /exists already/);
  await assert.rejects(saver.copyThread("Three", "Four"), /there is no thread/);
  const ids = async (s, thread) => (await collect(s.list(configOf(thread)))).map((c) => c.checkpoint.id);
  const one = await ids(saver, "One");
  assert.deepEqual(await ids(saverOf({ app: "copies" }), "Two"), one);
  await agent(6, saver).invoke({ messages: [new HumanMessage("Go on.")] }, configOf("Two"));
  assert.deepEqual(await ids(saver, "One"), one);
  assert.ok((await ids(saver, "Two")).length > one.length);
  await saver.copyThread("Two", "three");
  const threads = async () => new Set((await collect(saver.list({}))).map((c) => c.config.configurable.thread_id));
  assert.deepEqual(await threads(), new Set(["One", "Two", "three"]));
  await saver.deleteThread("One");
  assert.deepEqual(await threads(), new Set(["Two", "three"]));
  assert.equal(await saverOf({ app: "copies" }).getTuple(configOf("One")), undefined);
  await graph.invoke(question(), configOf("One"));
  assert.equal((await ids(saver, "One")).length, one.length);
  for (const thread of ["One", "Two", "three"]) await saver.deleteThread(thread);
  await saver.deleteThread("three");
  assert.deepEqual(await threads(), new Set());
  const other = saverOf({ app: "copies" });
  for (const s of [other, saver, other]) { // each deletes what the one before knows of
    await agent(4, s).invoke(question(), configOf("One"));
    assert.equal((await ids(s, "One")).length, one.length);
    assert.deepEqual(await threads(), new Set(["One"]));
    await (s === other ? saver : other).deleteThread("One");
    assert.equal(await s.getTuple(configOf("One")), undefined);
  }
});

test("threads and namespaces have any names", async () => {
  const saver = saverOf({ app: "a/b" });
  const names = ["x", "X", "é", "É", "a b", "main", "ns:x", "../..", "%", "|:!", "!~0041", "💡", "1"];
  const put = (thread, ns) => saver.put(configOf(thread, ns), checkpointOf({ a: [thread, ns] }, { a: 1 }), metadata, { a: 1 });
  for (const name of names) await Promise.all([put(name, ""), put("t", name)]);
  await saver.copyThread("t", "T T");
  const found = (await collect(saverOf({ app: "a/b" }).list({}))).map((c) => [c.config.configurable, c.checkpoint.channel_values.a]);
  assert.equal(found.length, 3 * names.length);
  for (const [{ thread_id, checkpoint_ns }, a] of found) assert.deepEqual([thread_id === "T T" ? "t" : thread_id, checkpoint_ns], a);
  assert.equal((await collect(saverOf().list({}))).some((c) => names.includes(c.config.configurable.thread_id)), false);
});

const metadata = { source: "loop", step: 1, parents: {} };
const checkpointOf = (channel_values, channel_versions, more) => ({
  v: 4, id: randomUUID(), ts: new Date().toISOString(), channel_values, channel_versions, versions_seen: {}, ...more,
});

test("two savers that take turns return what each stored", async () => {
  const seed = Number(process.env.CTXDIR_SEED ?? Date.now() % 100_000);
  let x = seed;
  const random = (n) => (x = (Math.imul(x, 1664525) + 1013904223) >>> 0, Math.floor((x / 2 ** 32) * n));
  const pick = (list) => list[random(list.length)];
  const long = () => `${random(9)} `.repeat(60);
  const values = [
    () => random(5), () => long(), () => null, () => undefined, () => new Map([["a", [random(9)]]]), () => new Set([1]),
    () => new Uint8Array([random(9)]),
    () => ({ "ctxdir:same": ["x"] }), () => ({ list: [{ text: long() }, [long()]] }), () => [], () => [random(3)], () => [1, random(3)],
    () => [{ role: "user", content: long() }], () => new AIMessage({ content: long(), id: pick([undefined, "1", "2"]) }),
  ];
  // Two processes, one of which keeps nothing in memory.
  const savers = [saverOf({ app: `turns ${seed}` }), saverOf({ app: `turns ${seed}`, cacheBytes: 0 })];
  const stored = []; // config, checkpoint as stored, metadata, parent, writes
  for (let i = 0; i < 120; i++) {
    const saver = pick(savers);
    if (stored.length && random(2)) {
      const of = pick(stored.slice(-3));
      const writes = Array.from({ length: 1 + random(2) }, () => [pick(["list", "other"]), pick(values)()]);
      const task = pick(["a", "b"]);
      await saver.putWrites(of.config, writes, task);
      writes.forEach(([channel, v], n) => of.writes.has(`${task}${n}`) || of.writes.set(`${task}${n}`, [task, channel, v]));
      continue;
    }
    const parent = random(8) ? stored.at(random(4) ? -1 : -1 - random(Math.min(4, stored.length))) : undefined;
    const channel_values = { ...parent?.checkpoint.channel_values };
    const channel_versions = { ...parent?.checkpoint.channel_versions };
    const newVersions = {};
    for (const channel of ["list", "other", "third"].filter(() => random(2))) {
      newVersions[channel] = channel_versions[channel] = (channel_versions[channel] ?? 0) + 1;
      const now = channel_values[channel];
      const written = [...(parent?.writes.values() ?? [])].map(([, , v]) => v).flat();
      if (Array.isArray(now) && random(3)) channel_values[channel] = [...now, pick([...written, pick(values)()])];
      else if (random(5)) channel_values[channel] = pick(values)();
      else delete channel_values[channel];
    }
    const checkpoint = checkpointOf(channel_values, channel_versions, { versions_seen: { [pick(["m", "n"])]: { list: i } } });
    const meta = { ...metadata, step: i, ...(random(2) && { note: null }) };
    const config = await saver.put(parent?.config ?? configOf("t"), checkpoint, meta, newVersions);
    stored.push({ config, checkpoint: structured(checkpoint), meta, parent, writes: new Map() });
  }
  for (const { config, checkpoint, meta, parent, writes } of stored) {
    for (const saver of [...savers, saverOf({ app: `turns ${seed}` })]) {
      const tuple = await saver.getTuple(config);
      const why = `seed ${seed}, step ${meta.step}`;
      assert.deepEqual(structured(tuple.checkpoint), checkpoint, why);
      assert.deepEqual(tuple.metadata, meta, why);
      assert.deepEqual(tuple.parentConfig, parent?.config, why);
      const key = (w) => JSON.stringify(structured(w));
      assert.deepEqual(tuple.pendingWrites.map(key).sort(), [...writes.values()].map(key).sort(), why);
    }
  }
});

test("savers that store at once lose nothing", async () => {
  const savers = Array.from({ length: 3 }, () => saverOf({ app: "at once" }));
  const ids = await Promise.all(savers.map(async (saver) => {
    const own = [];
    for (let n = 0, config = configOf("t", "ns"); n < 8; n++) {
      config = await saver.put(config, checkpointOf({ list: Array.from({ length: n }, (_, i) => i) }, { list: n }), metadata, { list: n });
      await saver.putWrites(config, [["list", n]], `task ${n}`);
      own.push(config.configurable.checkpoint_id);
    }
    return own;
  }));
  const found = new Map((await collect(saverOf({ app: "at once" }).list(configOf("t", "ns")))).map((c) => [c.checkpoint.id, c]));
  assert.equal(found.size, 24);
  for (const own of ids) {
    own.forEach((id, n) => {
      assert.deepEqual(found.get(id).checkpoint.channel_values.list, Array.from({ length: n }, (_, i) => i));
      assert.deepEqual(found.get(id).pendingWrites, [[`task ${n}`, "list", n]]);
      assert.equal(found.get(id).parentConfig?.configurable.checkpoint_id, own[n - 1]);
    });
  }
});

/** A value as it compares: messages by what they say. */
function structured(v) {
  if (typeof v?.getType === "function") return { type: v.getType(), id: v.id, content: v.content };
  if (v instanceof Uint8Array) return ["bytes", ...v];
  if (v instanceof Map || v instanceof Set) return [v.constructor.name, ...structured([...v])];
  if (Array.isArray(v)) return v.map(structured);
  if (typeof v !== "object" || v === null) return v;
  return Object.fromEntries(Object.entries(v).map(([k, m]) => [k, structured(m)]));
}

test("the store is whole", () => ctxtool(server.store, "check"));
