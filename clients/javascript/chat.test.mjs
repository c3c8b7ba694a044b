// The example with the Vercel AI SDK, a scripted model and a server that is killed. CTXTOOL names the command.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MockLanguageModelV3 } from "ai/test";
import { Client } from "@ctxdir/client";
import { Chat } from "./chat.mjs";
import { serve } from "./serve.mjs";

let server, client;
before(async () => {
  server = await serve();
  client = new Client(server);
});
after(() => server.close());

/** A model that answers with how many messages of users it was given. */
const model = () => new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => ({
    content: [{ type: "text", text: `${prompt.filter((m) => m.role === "user").length} so far` }],
    finishReason: { unified: "stop" }, usage: { inputTokens: {}, outputTokens: {} }, warnings: [],
  }),
});

test("a chat goes on after the server was killed", async () => {
  const chat = await Chat.open(client, "walk");
  assert.equal(await chat.ask(model(), "Where does the path begin?"), "1 so far");
  await server.kill();
  const again = await Chat.open(client, "walk");
  assert.equal(await again.ask(model(), "And where does it end?"), "2 so far");
  const history = await again.history();
  assert.deepEqual(history.map((m) => m.role), ["user", "assistant", "user", "assistant"]);
  assert.equal(history[0].content, "Where does the path begin?");
});

test("a question without an answer is asked again", async () => {
  const chat = await Chat.open(client, "retry");
  const broken = new MockLanguageModelV3({ doGenerate: async () => { throw new Error("overloaded"); } });
  await assert.rejects(chat.ask(broken, "Is it far?"), /overloaded/);
  assert.equal(await chat.ask(model(), "Is it far?"), "1 so far");
  assert.equal((await chat.history()).length, 2);
});
