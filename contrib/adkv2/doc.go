// Package adkv2 keeps the sessions and artifacts of Google's Agent Development Kit for Go, version 2, in a ctxdir store:
// one folder a session, one JSON file an event, durable when AppendEvent returns. It reads what package adk wrote for
// version 1.
//
// The files service.go, session.go and artifact.go are those of package adk with other import paths; a test compares
// them. Only event.go differs, since ADK 2 defines the JSON of an event.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package adkv2
