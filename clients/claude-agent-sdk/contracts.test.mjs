// What the SDK expects of a store. Its own suite, examples/session-stores/shared/conformance.ts of its repository, has 13
// contracts, and is not in the package: here they are written again. CTXTOOL names the command.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { CtxdirSessionStore } from "@ctxdir/claude-agent-sdk";
import { serve } from "../javascript/serve.mjs";

let server, store;
before(async () => {
  server = await serve();
  store = new CtxdirSessionStore(server);
});
after(() => server.close());

const entry = (type, more) => ({ type, ...more });
const fresh = (more) => ({ projectKey: randomUUID(), sessionId: "session", ...more });
const agent = (key, name) => ({ ...key, subpath: `subagents/${name}` });
const ids = async (project) => (await store.listSessions(project)).map((s) => s.sessionId).sort();

test("entries come back equal and in order", async () => {
  const key = fresh();
  const entries = [entry("a", { number: 1, nested: { list: [1, null, "é"] } }), entry("b", { empty: {} })];
  await store.append(key, entries);
  assert.deepEqual(await store.load(key), entries);
});

test("a key that was never written is null", async () => {
  assert.equal(await store.load(fresh()), null);
  assert.equal(await store.load(agent(fresh(), "a")), null);
});

test("appends keep the order of the calls", async () => {
  const key = fresh();
  await store.append(key, [entry("a")]);
  await store.append(key, [entry("b"), entry("c")]);
  await store.append(key, [entry("d")]);
  assert.deepEqual((await store.load(key)).map((e) => e.type), ["a", "b", "c", "d"]);
});

test("an append of nothing does nothing", async () => {
  const key = fresh();
  await store.append(key, []);
  assert.equal(await store.load(key), null);
  await store.append(key, [entry("a")]);
  await store.append(key, []);
  assert.deepEqual(await store.load(key), [entry("a")]);
});

test("a subpath is apart from the session", async () => {
  const key = fresh();
  await store.append(key, [entry("main")]);
  await store.append(agent(key, "x"), [entry("of x")]);
  assert.deepEqual(await store.load(key), [entry("main")]);
  assert.deepEqual(await store.load(agent(key, "x")), [entry("of x")]);
});

test("a project does not see another one's sessions", async () => {
  const [one, other] = [fresh(), fresh()];
  await store.append(one, [entry("one")]);
  await store.append(other, [entry("other")]);
  assert.deepEqual(await store.load(one), [entry("one")]);
  assert.deepEqual(await store.load(other), [entry("other")]);
});

test("the sessions of a project are listed", async () => {
  const key = fresh();
  for (const sessionId of ["s1", "s2"]) await store.append({ ...key, sessionId }, [entry("a")]);
  await store.append(fresh({ sessionId: "s3" }), [entry("a")]);
  assert.deepEqual(await ids(key.projectKey), ["s1", "s2"]);
  for (const { mtime } of await store.listSessions(key.projectKey)) assert.ok(Number.isInteger(mtime) && mtime > 1e12);
  assert.deepEqual(await store.listSessions("never seen"), []);
});

test("a session with subpaths only is not listed", async () => {
  const key = fresh();
  await store.append(agent(key, "x"), [entry("of x")]);
  assert.deepEqual(await ids(key.projectKey), []);
  await store.append(key, [entry("main")]);
  assert.deepEqual(await ids(key.projectKey), ["session"]);
});

test("a deleted session is null, and an unknown one can be deleted", async () => {
  const key = fresh();
  await store.append(key, [entry("a")]);
  await store.delete(key);
  assert.equal(await store.load(key), null);
  assert.deepEqual(await ids(key.projectKey), []);
  await store.delete(fresh());
  await store.append(key, [entry("again")]);
  assert.deepEqual(await store.load(key), [entry("again")]);
});

test("deleting a session deletes its subpaths, and nothing else", async () => {
  const key = fresh();
  const others = [{ ...key, sessionId: "other" }, fresh()];
  for (const k of [key, agent(key, "a"), agent(key, "b"), ...others]) await store.append(k, [entry("x")]);
  await store.delete(key);
  for (const k of [key, agent(key, "a"), agent(key, "b")]) assert.equal(await store.load(k), null);
  for (const k of others) assert.deepEqual(await store.load(k), [entry("x")]);
  assert.deepEqual(await store.listSubkeys(key), []);
});

test("deleting a subpath deletes it alone", async () => {
  const key = fresh();
  for (const k of [key, agent(key, "a"), agent(key, "b")]) await store.append(k, [entry("x")]);
  await store.delete(agent(key, "a"));
  assert.equal(await store.load(agent(key, "a")), null);
  for (const k of [key, agent(key, "b")]) assert.deepEqual(await store.load(k), [entry("x")]);
});

test("the subpaths of a session are listed", async () => {
  const key = fresh();
  for (const name of ["a", "b"]) await store.append(agent(key, name), [entry("x")]);
  await store.append(agent({ ...key, sessionId: "other" }, "c"), [entry("x")]);
  assert.deepEqual((await store.listSubkeys(key)).sort(), ["subagents/a", "subagents/b"]);
});

test("the session itself is no subpath", async () => {
  const key = fresh();
  await store.append(key, [entry("main")]);
  assert.deepEqual(await store.listSubkeys(key), []);
  assert.deepEqual(await store.listSubkeys(fresh()), []);
});
