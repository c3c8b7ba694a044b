// Package a2a keeps the tasks of a2a-go in a ctxdir store.
//
// [Store] implements taskstore.Store. A task is a context. Each state of the task is a message, and its version is the
// position of the message plus one.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package a2a
