// What a long thread costs. CTXTOOL names the command.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@ctxdir/client";
import { CtxdirSaver } from "@ctxdir/langgraph";
import { serve } from "../javascript/serve.mjs";
import { bytesOf, walk } from "./cost.mjs";

const records = "/v1/contexts/{context}/branches/{branch}/messages";

test("a thread of a thousand steps costs at most half more than its messages", async () => {
  // The bytes do not depend on the serializer, and LangGraph's own takes most of the time.
  const texts = new WeakMap();
  const textOf = (m) => texts.get(m) ?? texts.set(m, JSON.stringify(m)).get(m);
  const plain = {
    dumpsTyped: async (v) => ["json", Buffer.from(v?.[0]?.role ? `[${v.map(textOf)}]` : JSON.stringify(v))],
    loadsTyped: async (_, text) => JSON.parse(text),
  };
  const [threads, messages] = [await serve(), await serve()];
  const all = await walk(new CtxdirSaver(threads, plain), "walk", 1000, 1000);
  const read = await new CtxdirSaver(threads, plain).getTuple({ configurable: { thread_id: "walk" } });
  assert.deepEqual(read.checkpoint.channel_values.messages, all);
  const { id: context } = await new Client(messages).request("post", "/v1/contexts", { body: {} });
  for await (const _ of await new Client(messages).request("post", records, { path: { context, branch: "main" }, lines: all }));
  const sizes = [await bytesOf(threads.store), await bytesOf(messages.store)];
  await Promise.all([threads.close(), messages.close()]);
  const bytes = all.reduce((sum, m) => sum + JSON.stringify(m).length, 0);
  assert.ok(sizes[0].all <= 1.5 * sizes[1].all, `${sizes[0].all} bytes of files, ${sizes[1].all} for the messages alone`);
  assert.ok(sizes[0].lasting <= 1.5 * bytes, `${sizes[0].lasting} bytes in logs and segments, for messages of ${bytes}`);
});
