// What a thread of many steps costs, in bytes: for a test, and as a command for the figures of docs/FRAMEWORKS.md.
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** A text of n bytes, the same in every run, that compression does not make much smaller. */
function words(seed, n) {
  let x = seed * 2654435761 + 12345;
  let text = "";
  while (text.length < n) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    text += (x >>> 8).toString(36) + " ";
  }
  return text.slice(0, n);
}

export const said = (i, n) => ({ role: i % 2 ? "assistant" : "tool", id: `message-${i}`, content: words(i, n) });

/** Store a thread as a graph does in which a model and its tool take turns: each step writes a message of n bytes. */
export async function walk(saver, thread_id, steps, n) {
  let config = { configurable: { thread_id, checkpoint_ns: "" } };
  const all = [];
  for (let i = 0; i < steps; i++) {
    const message = said(i, n);
    const [from, to] = i % 2 ? ["model", "tools"] : ["tools", "model"];
    if (i) await saver.putWrites(config, [["messages", [message]], [`branch:to:${to}`, null]], randomUUID(), `~__pregel_pull, ${from}`);
    all.push(message);
    const newVersions = { messages: i + 1, "branch:to:model": i + 1, "branch:to:tools": i + 1 };
    config = await saver.put(config, {
      v: 4, id: uuid6(i), ts: new Date().toISOString(), channel_values: { messages: [...all], [`branch:to:${to}`]: null },
      channel_versions: newVersions, versions_seen: { [from]: { [`branch:to:${from}`]: i }, [to]: { [`branch:to:${to}`]: i - 1 } },
    }, { source: "loop", step: i, parents: {}, thread_id }, newVersions);
  }
  return all;
}

/** The bytes of the files of a folder, and of those that are not views of messages, which an archive removes. */
export async function bytesOf(folder) {
  let all = 0, lasting = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const { size } = await stat(path);
    all += size;
    if (!path.includes("/messages/")) lasting += size;
  }
  return { all, lasting };
}
