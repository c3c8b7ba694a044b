// Package trpcagent keeps the sessions and checkpoints of trpc-agent-go in a ctxdir store.
//
// [SessionService] implements session.Service and session.TrackService. A session is a context: each event is a
// message, and the session state changes in the same commit as the event that changes it. [Saver] implements
// graph.CheckpointSaver. A lineage is a context, a namespace is a branch, and a namespace that begins with a checkpoint
// of another one (CheckpointManager.BranchFrom) is a fork.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package trpcagent
