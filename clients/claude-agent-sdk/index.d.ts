import type { SessionStore } from "@anthropic-ai/claude-agent-sdk";
import type { Client, Options } from "@ctxdir/client";

/** A session is a context, an entry is a message, and what a subpath names, such as a sub-agent, is a branch. */
export class CtxdirSessionStore implements SessionStore {
  constructor(options: Options | { client: Client });
  append: SessionStore["append"];
  load: SessionStore["load"];
  listSessions: NonNullable<SessionStore["listSessions"]>;
  listSubkeys: NonNullable<SessionStore["listSubkeys"]>;
  delete: NonNullable<SessionStore["delete"]>;
}
