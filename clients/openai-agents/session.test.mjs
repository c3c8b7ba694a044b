// The sessions of the OpenAI Agents SDK on a store: the SDK as it is, with another base URL. CTXTOOL names the command.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { Agent, OpenAIConversationsSession, Runner, setTracingDisabled } from "@openai/agents";
import { OpenAIProvider } from "@openai/agents-openai";

setTracingDisabled(true);
const tool = process.env.CTXTOOL ?? "ctxtool";
let dir, server, client, model;

async function serve() {
  const child = spawn(tool, ["--json", "--store", join(dir, "store"), "serve", "--listen", "127.0.0.1:0"], {
    env: { ...process.env, XDG_STATE_HOME: dir },
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const { url, api } = JSON.parse(line);
    client = new OpenAI({ baseURL: api, apiKey: url.split("#token=")[1] });
    return child;
  }
}

async function stop(child, signal) {
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

// The model answers with how many messages of users it was given.
async function scripted() {
  const answers = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const users = JSON.parse(body).messages.filter((m) => m.role === "user").length;
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({
      id: "chatcmpl-1", object: "chat.completion", created: 1, model: "scripted",
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: `${users} so far`, refusal: null } }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }));
  });
  answers.listen(0, "127.0.0.1");
  await once(answers, "listening");
  return answers;
}

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "agents-"));
  const init = spawn(tool, ["--store", join(dir, "store"), "init"], { stdio: ["ignore", "ignore", "inherit"] });
  await once(init, "exit");
  server = await serve();
  model = await scripted();
});

after(async () => {
  await stop(server, "SIGINT");
  model.close();
  await rm(dir, { recursive: true });
});

test("an agent goes on after the server was killed", async () => {
  const provider = new OpenAIProvider({
    baseURL: `http://127.0.0.1:${model.address().port}/v1`, apiKey: "none", useResponses: false,
  });
  const runner = new Runner({ modelProvider: provider });
  const agent = new Agent({ name: "walker", model: "scripted", instructions: "Answer." });
  const session = new OpenAIConversationsSession({ client });
  const first = await runner.run(agent, "Where does the path begin?", { session });
  assert.equal(first.finalOutput, "1 so far");
  const id = await session.getSessionId();
  await stop(server, "SIGKILL");
  server = await serve();
  const again = new OpenAIConversationsSession({ client, conversationId: id });
  const second = await runner.run(agent, "And where does it end?", { session: again });
  assert.equal(second.finalOutput, "2 so far");
  const items = await again.getItems();
  assert.deepEqual(items.map((i) => i.role), ["user", "assistant", "user", "assistant"]);
  assert.equal(items[0].content[0].text, "Where does the path begin?");
  assert.equal(items[3].content[0].text, "2 so far");
});

test("items are listed, popped and cleared", async () => {
  const session = new OpenAIConversationsSession({ client });
  const said = (n) => ({ type: "message", role: "user", content: [{ type: "input_text", text: `message ${n}` }] });
  await session.addItems(Array.from({ length: 250 }, (_, n) => said(n)));
  const text = (item) => item.content[0].text;
  const all = await session.getItems();
  assert.deepEqual(all.map(text), Array.from({ length: 250 }, (_, n) => `message ${n}`));
  assert.deepEqual((await session.getItems(3)).map(text), ["message 247", "message 248", "message 249"]);
  assert.equal(text(await session.popItem()), "message 249");
  assert.deepEqual((await session.getItems(2)).map(text), ["message 247", "message 248"]);
  const id = await session.getSessionId();
  await client.conversations.items.delete(all[5].id, { conversation_id: id });
  assert.equal((await session.getItems()).length, 248);
  await session.clearSession();
  await assert.rejects(client.conversations.retrieve(id), { status: 404 });
  await assert.rejects(client.conversations.items.list("conv_" + "0".repeat(32)), { status: 404 });
});
