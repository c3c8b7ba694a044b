// Package langchaingo keeps the chat histories of langchaingo in a ctxdir store.
//
// [History] implements schema.ChatMessageHistory: a session is a context, and each chat message is a message of its
// active branch.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package langchaingo
