package transcript

import "encoding/json"

// claudeRecords are the records of Claude Code that are not part of the conversation. Those of type "system" are, when
// they mark a compaction.
var claudeRecords = map[string]bool{
	"progress": true, "file-history-snapshot": true, "queue-operation": true, "pr-link": true, "summary": true, "system": true,
	"custom-title": true, "agent-name": true, "last-prompt": true, "attachment": true, "permission-mode": true,
}

// codexRecords are the records of Codex that are not part of the conversation. An event repeats what a response item says,
// or reports progress.
var codexRecords = map[string]bool{"session_meta": true, "turn_context": true, "event_msg": true}

// piRecords are the records of pi that are not part of the conversation.
var piRecords = map[string]bool{
	"session": true, "thinking_level_change": true, "model_change": true, "label": true, "session_info": true, "custom": true,
}

// IsClaude reports whether a message is a record of Claude Code.
func IsClaude(body json.RawMessage) bool { return ObjectOf(body).isClaude() }

// isClaude needs a type: Gemini CLI has a member sessionId, too.
func (o Object) isClaude() bool {
	return o.Text("type") != "" && (o["sessionId"] != nil || o["leafUuid"] != nil || o["snapshot"] != nil)
}

// IsCodex reports whether a message is a record of a rollout of Codex.
func IsCodex(body json.RawMessage) bool {
	o := ObjectOf(body)
	kind := o.Text("type")
	return ObjectOf(o["payload"]) != nil && o["timestamp"] != nil && (codexRecords[kind] || kind == "response_item" || kind == "compacted")
}

// Bookkeeping reports whether a record of an agent tool is not part of the conversation: settings, progress, snapshots,
// repetitions of other records, and what the tool itself said to the model in the name of the user.
func Bookkeeping(body json.RawMessage) bool {
	o := ObjectOf(body)
	kind := o.Text("type")
	switch {
	case o.isClaude():
		return o.isTrue("isMeta") || claudeRecords[kind] && o.Text("subtype") != "compact_boundary"
	case o["payload"] != nil:
		return codexRecords[kind]
	case string(o["message"]) == "null" && o["children"] != nil: // the root of a tree of ChatGPT
		return true
	case o["timestamp"] != nil:
		return piRecords[kind]
	}
	return false
}

// IsSummary reports whether a record is the summary of a conversation that its tool made to continue with it.
func IsSummary(body json.RawMessage) bool {
	o := ObjectOf(body)
	kind := o.Text("type")
	return o.isTrue("isCompactSummary") || kind == "compacted" || kind == "compaction"
}
