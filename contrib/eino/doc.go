// Package eino keeps the checkpoints of eino in a ctxdir store.
//
// [Store] implements compose.CheckPointStore and adk.CheckPointStore, and the optional CheckPointDeleter. The checkpoints
// of one id are a context: each is a message, and the newest one counts. So an agent continues from an earlier
// checkpoint on another branch.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package eino
