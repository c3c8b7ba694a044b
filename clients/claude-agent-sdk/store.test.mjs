// The store with the functions of the SDK, and what its contracts do not ask. CTXTOOL names the command.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deleteSession, forkSession, getSessionMessages, listSessions, renameSession } from "@anthropic-ai/claude-agent-sdk";
import { Client } from "@ctxdir/client";
import { CtxdirSessionStore } from "@ctxdir/claude-agent-sdk";
import { ctxtool, serve } from "../javascript/serve.mjs";

const recorded = new URL("../../importer/testdata/claude-code/session.jsonl", import.meta.url);
const session = "a0000000-0000-4000-8000-000000000900";
let server, store, entries;

before(async () => {
  server = await serve();
  store = new CtxdirSessionStore(server);
  entries = (await readFile(recorded, "utf8")).trim().split("\n").map((line) => JSON.parse(line));
});
after(() => server.close());

test("ctxtool shows a session as it shows an import of Claude Code's file", async () => {
  const records = (text) => text.trim().split("\n").map((line) => JSON.parse(line));
  const listed = async (folder) => records(await ctxtool(folder, "--json", "ls"))[0];
  const shown = async (folder) => records(await ctxtool(folder, "--json", "show", (await listed(folder)).id))
    .map(({ position, role, type, message, created_at }) => ({ position, role, type, message, created_at }));
  const other = join(server.dir, "imported");
  await ctxtool(other, "init");
  await ctxtool(other, "import", recorded.pathname);
  const want = await shown(other); // without what was rewound: an import makes a branch of it
  for (const { message } of want) await store.append({ projectKey: "-home-ada-harbour", sessionId: session }, [message]);
  assert.deepEqual(await shown(server.store), want);
  const [mine, imported] = [await listed(server.store), await listed(other)];
  for (const of of [mine, imported]) for (const label of ["project_key", "session"]) delete of.labels[label];
  assert.deepEqual([mine.title, mine.tool, mine.labels], [imported.title, imported.tool, imported.labels]);
});

test("the SDK lists, reads, renames, forks and deletes sessions", async () => {
  const dir = join(server.dir, "harbour");
  await mkdir(dir);
  const { projectKey } = await keyOf(dir);
  await store.append({ projectKey, sessionId: session }, entries);
  const options = { dir, sessionStore: store };
  assert.deepEqual((await listSessions(options)).map((s) => s.sessionId), [session]);
  const messages = await getSessionMessages(session, options);
  assert.ok(messages.some((m) => JSON.stringify(m.message).includes("When is high water at Dover?")));
  await renameSession(session, "Tides", options);
  assert.equal((await listSessions(options))[0].customTitle, "Tides");
  const { contexts } = await new Client(server).request("get", "/v1/contexts", { query: { label: [`project_key=${projectKey}`] } });
  assert.deepEqual(contexts.map((c) => c.title), ["Tides"]);
  const fork = await forkSession(session, options);
  assert.equal((await getSessionMessages(fork.sessionId, options)).length, messages.length);
  await deleteSession(session, options);
  assert.deepEqual((await listSessions(options)).map((s) => s.sessionId), [fork.sessionId]);
});

/** The key of a project, as the SDK makes it. */
async function keyOf(dir) {
  let key;
  await listSessions({ dir, sessionStore: { append() {}, load() {}, listSessions: (projectKey) => (key = { projectKey }, []) } });
  return key;
}

test("a repetition stores nothing twice, also after the server was killed", async () => {
  const key = { projectKey: "p", sessionId: randomUUID() };
  const said = Array.from({ length: 50 }, (_, n) => ({ type: "user", uuid: randomUUID(), n }));
  const parts = [said.slice(0, 20), said.slice(10, 40), said];
  for (const part of parts) {
    for (const of of [key, { ...key, subpath: "subagents/a" }]) await store.append(of, part);
    await server.kill();
  }
  assert.deepEqual(await store.load(key), said);
  assert.deepEqual(await store.load({ ...key, subpath: "subagents/a" }), said);
  const other = { ...said[3], n: "another" };
  await store.append(key, [other, { type: "user", uuid: "not a UUID" }]);
  await store.append(key, [other, { type: "user", uuid: "not a UUID" }]);
  assert.deepEqual((await store.load(key)).slice(50), [other, { type: "user", uuid: "not a UUID" }]);
});

test("stores that append at once lose nothing", async () => {
  const key = { projectKey: "p", sessionId: randomUUID(), subpath: "subagents/a" };
  const stores = Array.from({ length: 4 }, () => new CtxdirSessionStore(server));
  await Promise.all(stores.map(async (s, i) => {
    for (let n = 0; n < 10; n++) await s.append(key, [{ type: "user", i, n }]);
  }));
  const all = await store.load(key);
  for (let i = 0; i < 4; i++) assert.deepEqual(all.filter((e) => e.i === i).map((e) => e.n), Array.from({ length: 10 }, (_, n) => n));
});

test("a thousand entries are appended at once", async () => {
  const key = { projectKey: "p", sessionId: randomUUID() };
  const many = Array.from({ length: 1000 }, (_, n) => ({ type: "user", uuid: randomUUID(), text: "long ".repeat(80), n }));
  await store.append(key, many);
  assert.deepEqual(await store.load(key), many);
});
