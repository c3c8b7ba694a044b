// The sessions of the Claude Agent SDK in a store of ctxdir: see README.md.
import { createHash } from "node:crypto";
import { Client, orMissing } from "@ctxdir/client";

const tool = "claude-code";
const branches = "/v1/contexts/{context}/branches";
const pageSize = 1000;
const maxTitle = 200;

/** Types of entries that people do not read: those that an import of Claude Code's files marks, too. */
const bookkeeping = new Set([
  "progress", "file-history-snapshot", "queue-operation", "summary", "pr-link", "custom-title", "ai-title", "agent-name", "agent-color",
  "agent-setting", "last-prompt", "permission-mode", "mode", "tag", "attribution-snapshot", "content-replacement", "worktree-state",
  "system/stop_hook_summary", "system/turn_duration",
]);

const isUUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const externalID = ({ projectKey, sessionId }) => `claude/${encodeURIComponent(projectKey)}/${encodeURIComponent(sessionId)}`;
const branchOf = ({ subpath }) => subpath || "main";

/** The id of the message of an entry, by which a repetition is known; undefined if the entry has none. */
function idOf({ uuid }, subpath = "", text = "") {
  if (!uuid) return undefined;
  if (isUUID.test(uuid) && !subpath && !text) return uuid;
  const b = createHash("sha256").update(JSON.stringify([subpath, uuid, text])).digest();
  b[6] = (b[6] & 0x0f) | 0x80;
  b[8] = (b[8] & 0x3f) | 0x80;
  return b.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const envelopeOf = (entry, id) => ({
  ...(id && { id }),
  ...((bookkeeping.has(entry.type) || bookkeeping.has(`${entry.type}/${entry.subtype}`)) && { role: "bookkeeping" }),
  message: entry,
});

/** What entries say about their session: its title is the newest one that a person or the tool set, else the first prompt. */
function describe({ title, labels = {} }, entries, session, summary) {
  const said = entries.findLast((e) => e.customTitle || e.aiTitle);
  const prompt = entries.find((e) => e.type === "user" && !e.isMeta && typeof e.message?.content === "string");
  const first = prompt?.message.content.trim().split("\n")[0].slice(0, maxTitle).replace(/[\uD800-\uDBFF]$/, ""); // no half of a pair
  const text = said?.customTitle || said?.aiTitle || summary || title || first;
  const found = { session, project: entries.find((e) => e.cwd)?.cwd, git_branch: entries.find((e) => e.gitBranch)?.gitBranch };
  const missing = Object.entries(found).filter(([label, value]) => value && !labels[label]);
  return { ...(text && text !== title && { title: text }), ...(missing.length && { labels: Object.fromEntries(missing) }) };
}

/** A session is a context, an entry is a message, and what a subpath names, such as a sub-agent, is a branch. */
export class CtxdirSessionStore {
  #client;

  constructor({ client, ...options }) {
    this.#client = client ?? new Client(options);
  }

  async append(key, entries) {
    if (!entries.length) return;
    const body = { external_id: externalID(key), labels: { tool, project_key: key.projectKey } };
    const context = await this.#request("post", "/v1/contexts", { query: { open: true }, body });
    const branch = branchOf(key);
    const changes = [{ op: "append", branch, messages: entries.map((e) => envelopeOf(e, idOf(e, key.subpath))) }];
    // A session is listed once it has a transcript of its own.
    const update = key.subpath ? {} : describe(context, entries, key.sessionId, await this.#summary(context.id, entries));
    if (Object.keys(update).length) changes.push({ op: "update", update });
    await this.#commit(context.id, branch, changes).catch(async (e) => {
      if (e.code !== "conflict") throw e;
      // An entry came again with other content: it is stored beside the first one.
      for (const entry of entries) {
        const append = (id) => this.#commit(context.id, branch, [{ op: "append", branch, messages: [envelopeOf(entry, id)] }]);
        await append(idOf(entry, key.subpath)).catch((e) => {
          if (e.code !== "conflict") throw e;
          return append(idOf(entry, key.subpath, JSON.stringify(entry)));
        });
      }
    });
  }

  async load(key) {
    const path = { context: externalID(key), branch: branchOf(key) };
    const lines = await orMissing(this.#request("get", `${branches}/{branch}/messages`, { path }));
    const entries = [];
    for await (const line of lines ?? []) {
      if (!line.message) throw new Error(`the entry at position ${line.position} is unavailable: ${line.unavailable}`);
      entries.push(line.message);
    }
    return entries.length ? entries : null;
  }

  async listSessions(projectKey) {
    const found = [];
    for (let cursor; ;) {
      const query = { label: [`tool=${tool}`, `project_key=${projectKey}`], sort: "created", limit: pageSize, cursor };
      const { contexts, next } = await this.#request("get", "/v1/contexts", { query });
      for (const { labels, updated_at } of contexts) {
        if (labels.session) found.push({ sessionId: labels.session, mtime: Date.parse(updated_at) });
      }
      if (!(cursor = next)) return found;
    }
  }

  async listSubkeys(key) {
    const list = await orMissing(this.#request("get", branches, { path: { context: externalID(key) } }));
    return list?.branches.filter((b) => b.name !== "main" && b.messages).map((b) => b.name) ?? [];
  }

  /** Move a session, or what a subpath names, to the trash. */
  async delete(key) {
    const path = { context: externalID(key), branch: branchOf(key) };
    await orMissing(this.#request("delete", key.subpath ? `${branches}/{branch}` : "/v1/contexts/{context}", { path }));
  }

  /** The newest summary among entries, if it is about an entry of this session: Claude Code stores those of others, too. */
  async #summary(context, entries) {
    const { summary, leafUuid: id } = entries.findLast((e) => e.type === "summary") ?? {};
    if (!summary || entries.some((e) => e.uuid === id)) return summary;
    if (!isUUID.test(id)) return undefined;
    const request = { path: { context, branch: "main", id }, query: { content: "none" } };
    return (await orMissing(this.#request("get", `${branches}/{branch}/messages/{id}`, request))) && summary;
  }

  #request(...request) {
    return this.#client.request(...request);
  }

  /** Make changes one commit. */
  async #commit(context, branch, changes) {
    const commit = () => this.#request("post", "/v1/contexts/{context}/commit", { path: { context }, body: { changes } });
    return commit().catch(async (e) => {
      if (e.code !== "not_found" || e.branch === undefined) throw e;
      await this.#client.ensureBranch(context, branch);
      return commit();
    });
  }
}
