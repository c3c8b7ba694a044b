// Package sessions stores the sessions of agent frameworks that have sessions, events, and state in three scopes, as
// ADK has. It knows no framework: an adapter converts the framework's events to JSON, and calls this package.
//
//	context                            kind             external id
//	a session                          none             TOOL/APP/USER/SESSION
//	the state of an application        app-state        TOOL/APP
//	the state of a user                user-state       TOOL/APP/USER
//	a file with its versions           artifact         TOOL/APP/USER/SESSION/FILE
//
// An event is a message. The state of a session is the state of its branch, so a fork has its own. It changes in the
// commit of the event that changes it. The states of application and user are contexts of their own, which change just
// before: a crash between the commits leaves such a state without the event, never the event without the state.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package sessions
