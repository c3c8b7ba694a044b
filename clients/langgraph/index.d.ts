import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  ChannelVersions, Checkpoint, CheckpointListOptions, CheckpointMetadata, CheckpointTuple, PendingWrite, SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Client, Options } from "@ctxdir/client";

/** A thread is a context, a namespace of it is a branch. A copy of a thread is a fork of its branches, in the same context. */
export class CtxdirSaver extends BaseCheckpointSaver {
  /**
   * `app` separates the threads of several applications in a store. `cacheBytes` bounds the records in memory, by default 64 MiB;
   * the namespace that was used last stays.
   */
  constructor(options: (Options | { client: Client }) & { app?: string; cacheBytes?: number }, serde?: SerializerProtocol);
  getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined>;
  list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple>;
  put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: ChannelVersions): Promise<RunnableConfig>;
  putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void>;
  /** Delete a thread. Copies of it stay. */
  deleteThread(threadId: string): Promise<void>;
  /** Make a thread that begins as another one. It stores no checkpoint again. */
  copyThread(sourceThreadId: string, targetThreadId: string): Promise<void>;
}
