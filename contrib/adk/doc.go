// Package adk keeps the sessions and artifacts of Google's Agent Development Kit for Go, version 1, in a ctxdir store:
// one folder a session, one JSON file an event, durable when AppendEvent returns. Package adkv2 does so for version 2
// and reads the same stores.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package adk
