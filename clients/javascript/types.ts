// What the types of the client accept and refuse: a test compiles it.
import { Client, Problem, type Schemas } from "@ctxdir/client";

export async function accepted(client: Client): Promise<void> {
  const context: Schemas["Context"] = await client.request("post", "/v1/contexts", { body: { title: "A walk", labels: { user: "ada" } } });
  const path = { context: context.id, branch: "main" };
  const lines = await client.request("get", "/v1/contexts/{context}/branches/{branch}/messages", { path, query: { last: 5 } });
  for await (const line of lines) {
    const id: string = line.id;
    void id;
  }
  await client.request("post", "/v1/contexts/{context}/branches/{branch}/messages", { path, lines: [{ role: "user", content: "Hello" }] });
  const gone: undefined = await client.request("delete", "/v1/contexts/{context}/branches/{branch}", { path });
  const payload: Response = await client.request("get", "/v1/blobs/{sha256}", { path: { sha256: "" } });
  void [gone, payload, await client.request("get", "/v1/store")];
  for await (const event of client.follow(context.id, { after: 1 })) if (event.record === "message") return;
}

export async function refused(client: Client, e: unknown): Promise<void> {
  // @ts-expect-error: there is no such path
  await client.request("get", "/v1/none");
  // @ts-expect-error: the store cannot be removed
  await client.request("delete", "/v1/store");
  // @ts-expect-error: the path needs a context
  await client.request("get", "/v1/contexts/{context}");
  // @ts-expect-error: a member is misspelt
  await client.request("post", "/v1/contexts", { body: { tilte: "A walk" } });
  // @ts-expect-error: a parameter has another type
  await client.request("get", "/v1/contexts", { query: { limit: "5" } });
  // @ts-expect-error: no problem has this code
  if (e instanceof Problem && e.code === "nothing") return;
}
