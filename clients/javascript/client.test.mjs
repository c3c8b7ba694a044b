// The client against a real server. CTXTOOL names the command.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import WebSocket from "ws";
import { Client, Problem } from "@ctxdir/client";
import { serve } from "./serve.mjs";

const run = promisify(execFile);
const bin = (name) => new URL(`./node_modules/.bin/${name}`, import.meta.url).pathname;
let server, client;

before(async () => {
  server = await serve();
  client = new Client({ ...server, WebSocket });
});
after(() => server.close());

const messages = "/v1/contexts/{context}/branches/{branch}/messages";

async function collect(lines) {
  const all = [];
  for await (const line of await lines) all.push(line);
  return all;
}

const create = (title) => client.request("post", "/v1/contexts", { body: { title } });
const append = (context, ...lines) =>
  collect(client.request("post", messages, { path: { context, branch: "main" }, lines }));

test("the types are those of the API", async () => {
  const dir = await mkdtemp(join(tmpdir(), "ctxdir-types-"));
  const made = join(dir, "api.d.ts");
  await run(bin("openapi-typescript"), ["../../api/openapi.yaml", "--empty-objects-unknown", "-o", made], { cwd: import.meta.dirname });
  const [want, have] = await Promise.all([readFile(made, "utf8"), readFile(new URL("api.d.ts", import.meta.url), "utf8")]);
  await rm(dir, { recursive: true });
  assert.equal(have, want, "api.d.ts is not that of openapi.yaml: npm run generate");
});

test("programs in TypeScript compile, and wrong ones do not", async () => {
  await run(bin("tsc"), ["--project", "."], { cwd: import.meta.dirname });
});

test("messages are appended, read and forked", async () => {
  const { id: context } = await create("A walk");
  const said = Array.from({ length: 300 }, (_, n) => ({ role: "user", content: `Café ${n} ${"…".repeat(n)}` }));
  const appended = await append(context, ...said);
  assert.deepEqual(appended.map((a) => a.position), said.map((_, n) => n));
  const read = await collect(client.request("get", messages, { path: { context, branch: "main" } }));
  assert.deepEqual(read.map((m) => m.message), said);
  const odd = "a/b ?#%";
  await client.request("post", "/v1/contexts/{context}/branches", { path: { context }, body: { name: odd, from: "main", at: 2 } });
  assert.equal((await collect(client.request("get", messages, { path: { context, branch: odd } }))).length, 2);
  assert.equal(await client.request("delete", "/v1/contexts/{context}/branches/{branch}", { path: { context, branch: odd } }), undefined);
  const path = { name: "plan.txt" };
  await client.request("put", "/v1/artifacts/{name}", { path, raw: "Berth 5.", type: "text/plain" });
  assert.equal(await (await client.request("get", "/v1/artifacts/{name}", { path })).text(), "Berth 5.");
  await client.request("post", "/v1/contexts", { body: { labels: { trip: "1" } } });
  const { contexts } = await client.request("get", "/v1/contexts", { query: { label: ["trip=1"] } });
  assert.equal(contexts.length, 1);
});

test("an error is a problem", async () => {
  const missing = client.request("get", "/v1/contexts/{context}", { path: { context: "none" } });
  await assert.rejects(missing, (e) => e instanceof Problem && e.code === "not_found" && e.status === 404);
  const stranger = new Client({ ...server, token: "no" });
  await assert.rejects(stranger.request("get", "/v1/store"), { code: "unauthorized" });
});

test("a follower sees each commit once, also after the server was killed", async () => {
  const { id: context } = await create("Followed");
  await append(context, { n: 0 }, { n: 1 });
  const events = client.follow(context, { after: 1 });
  const seen = [];
  const until = async (n) => {
    while (!seen.includes(n)) {
      const { value: event } = await events.next();
      if (event.record === "message") seen.push(event.message.n);
    }
  };
  await until(1);
  await append(context, { n: 2 });
  await until(2);
  const next = until(4);
  await server.kill();
  await append(context, { n: 3 }, { n: 4 });
  await next;
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
  await client.request("delete", "/v1/contexts/{context}", { path: { context } });
  await assert.rejects(async () => { for (;;) await events.next(); }, { code: "not_found" });
});

test("a follower stops when its consumer does, or its signal", async () => {
  const { id: context } = await create("Left");
  await append(context, { n: 0 });
  const stop = new AbortController();
  const events = client.follow(context, { signal: stop.signal });
  const first = events.next();
  stop.abort(new Error("enough"));
  await assert.rejects(first, { message: "enough" });
  for await (const event of client.follow(context, { after: 0 })) {
    assert.equal(event.context, context);
    break;
  }
  await assert.rejects(new Client({ ...server, WebSocket: null }).follow(context).next(), /Node has it from version 22/);
});
