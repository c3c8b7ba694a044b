package importer

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// byLines are the formats that are lines and nothing else.
var byLines = map[Format]bool{ClaudeCode: true, Codex: true, Copilot: true, Pi: true, JSONL: true}

// signature is what an object of a format looks like.
type signature struct {
	format Format
	fits   func(s *shape) bool
}

// signatures are tried in this order.
var signatures = []signature{
	{ChatGPT, func(s *shape) bool { return s.is("mapping", '{') }},
	{Codex, func(s *shape) bool {
		return s.has("timestamp", "type", "payload") || s.typ() == "session_meta" || s.has("record_type") ||
			s.has("id", "timestamp", "instructions")
	}},
	{Copilot, func(s *shape) bool {
		return s.has("id", "timestamp") && s.is("data", '{') && strings.Contains(s.typ(), ".")
	}},
	{OpenCode, func(s *shape) bool {
		session := strings.HasPrefix(s.values["id"], "ses_") && s.has("time")
		part := strings.HasPrefix(s.values["sessionID"], "ses_")
		export := s.is("info", '{') && s.is("messages", '[')
		return session || part || export && (strings.HasPrefix(s.values["info.id"], "ses_") || s.within("messages", "info", "parts"))
	}},
	{MiniSWEAgent, func(s *shape) bool {
		return s.is("messages", '[') && (strings.HasPrefix(s.values["trajectory_format"], "mini-swe-agent") ||
			s.within("info", "mini_version") || s.within("info", "exit_status", "submission"))
	}},
	{SWEAgent, func(s *shape) bool {
		return s.is("history", '[') && (s.has("trajectory") || s.within("history", "role", "agent")) ||
			s.within("trajectory", "action", "observation")
	}},
	{Gemini, func(s *shape) bool {
		return s.has("sessionId", "projectHash") || s.has("$set") || s.has("$rewindTo") || s.typ() == "gemini" && s.has("id", "content")
	}},
	{LibreChat, func(s *shape) bool {
		return s.has("conversationId") && (s.is("messages", '[') || s.is("messagesTree", '['))
	}},
	{Pi, func(s *shape) bool { return s.typ() == "session" && s.has("id", "cwd") }},
	{OpenAssistant, func(s *shape) bool {
		return s.has("message_tree_id") && s.within("prompt", "message_id") || s.has("message_id", "text", "role", "replies")
	}},
	{OpenHands, func(s *shape) bool {
		event := s.has("id", "timestamp", "source")
		return event && (s.is("action", '"') || s.is("observation", '"')) || event && s.is("kind", '"')
	}},
	{ClaudeCode, func(s *shape) bool {
		return s.typ() != "" && (s.is("sessionId", '"') || s.has("uuid", "parentUuid") || s.has("leafUuid")) ||
			s.typ() == "file-history-snapshot"
	}},
	{OpenAI, func(s *shape) bool {
		return s.is("role", '"') && (s.has("content") || s.has("tool_calls") || s.has("function_call")) ||
			s.is("messages", '[') && (!s.array || s.inner["messages"] != nil)
	}},
}

// format is the format for which such an object is typical; [JSONL] if for none.
func (s *shape) format() Format {
	if !s.element {
		return ""
	}
	for _, sig := range signatures {
		if sig.fits(s) {
			return sig.format
		}
	}
	if s.array {
		return ""
	}
	return JSONL
}

func (s *shape) typ() string { return s.values["type"] }

func (s *shape) has(keys ...string) bool { return hasAll(s.keys, keys) }

func (s *shape) is(key string, kind jsontext.Kind) bool { return s.kinds[key] == kind }

// within reports whether the first object under a member has these names.
func (s *shape) within(key string, names ...string) bool { return hasAll(s.inner[key], names) }

func hasAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(k string) bool { return !slices.Contains(list, k) })
}
