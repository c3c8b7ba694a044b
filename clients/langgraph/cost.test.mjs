// What a long thread costs. CTXTOOL names the command.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@ctxdir/client";
import { CtxdirSaver } from "@ctxdir/langgraph";
import { serve } from "../javascript/serve.mjs";
import { bytesOf, walk } from "./cost.mjs";

const records = "/v1/contexts/{context}/branches/{branch}/messages";

test("a thread of a thousand steps costs at most half more than its messages", async () => {
  // The bytes do not depend on the serializer, and LangGraph's own takes most of the time: this one goes on where its text ends.
  const text = Buffer.alloc(2 << 20);
  let [elements, length] = [0, 0];
  const plain = {
    async dumpsTyped(v) {
      if (!v?.[0]?.role) return ["json", Buffer.from(JSON.stringify(v))];
      for (; elements < v.length; elements++) length += text.write((elements ? "," : "[") + JSON.stringify(v[elements]), length);
      text[length] = "]".charCodeAt(0);
      return ["json", v.length === 1 ? Buffer.from(JSON.stringify(v)) : text.subarray(0, length + 1)];
    },
    loadsTyped: async (_, json) => JSON.parse(json),
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
