// LangGraph's own suite for savers, which vitest runs: see saver.test.mjs.
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { randomUUID } from "node:crypto";
import { CtxdirSaver } from "@ctxdir/langgraph";

const initializer = {
  checkpointerName: "@ctxdir/langgraph",
  createCheckpointer: () => new CtxdirSaver({ url: process.env.CTXDIR_URL, token: process.env.CTXDIR_TOKEN, app: randomUUID() }),
};
validate(initializer);
deltaChannelHistoryTests(initializer);
