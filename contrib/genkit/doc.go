// Package genkit keeps the sessions of Genkit in a ctxdir store.
//
// [Store] implements session.Store. A session is a context. Each state that is saved is a message, and the newest one
// on the active branch counts. So a session continues from an earlier state on another branch.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package genkit
