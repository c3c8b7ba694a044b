// A chat with the Vercel AI SDK that goes on where it ended: an example, which chat.test.mjs runs.
import { generateText } from "ai";
import { Client } from "@ctxdir/client";

const messages = "/v1/contexts/{context}/branches/{branch}/messages";

export class Chat {
  #client;
  #path;

  constructor(client, context) {
    this.#client = client;
    this.#path = { context, branch: "main" };
  }

  /** Open the chat with an id of yours, or begin it. */
  static async open(client, id) {
    const context = await client.request("post", "/v1/contexts", { query: { open: true }, body: { external_id: id } });
    return new Chat(client, context.id);
  }

  /** The messages so far, as the SDK takes them. */
  async history() {
    const all = [];
    for await (const line of await this.#client.request("get", messages, { path: this.#path })) all.push(line.message);
    return all;
  }

  /** Ask the model. The question is durable before the model sees it, and the answer before it is returned. */
  async ask(model, question) {
    const history = await this.history();
    const asked = { role: "user", content: question };
    if (history.at(-1)?.role !== "user") await this.#append([asked]);
    else if (history.at(-1).content === question) history.pop(); // the last call stored the question and no answer
    else throw new Error("the last question has no answer: ask it again");
    const { text, response } = await generateText({ model, messages: [...history, asked] });
    await this.#append(response.messages);
    return text;
  }

  async #append(lines) {
    for await (const appended of await this.#client.request("post", messages, { path: this.#path, lines })) void appended;
  }
}

if (process.argv[1] === import.meta.filename) {
  const client = new Client({ url: process.env.CTXDIR_URL, token: process.env.CTXDIR_TOKEN });
  const chat = await Chat.open(client, "walks");
  console.log(await chat.ask("anthropic/claude-sonnet-4.5", process.argv[2] ?? "Where should I walk?"));
}
