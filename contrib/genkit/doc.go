// Package genkit keeps the sessions of Genkit's agents in a ctxdir store.
//
// [Store] implements exp.SessionStore and exp.SnapshotSubscriber. A session is a context, and the messages of its
// conversation are messages of the context. A snapshot is a message of the type "snapshot" behind them: it has the rest of
// the state, and is stored in the same commit as the messages that are new. A snapshot whose messages do not continue those
// of its parent is on a fork.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package genkit
