// Package apirules checks requests against the rules of the APIs of models: Anthropic's Messages, and OpenAI's Chat
// Completions and Responses. It is for tests of what ctxdir writes for these APIs.
//
// The rules are those of the public references, of the types in the vendors' own clients, and of the errors that the APIs
// answer with. A comment at each rule names its source:
//
//	[M]  Messages, platform.claude.com/docs/en/api/messages
//	[MT] MessageParam, ContentBlockParam: src/resources/messages/messages.ts of anthropic-sdk-typescript
//	[TU] Handle tool calls, platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls
//	[ET] Extended thinking, platform.claude.com/docs/en/build-with-claude/extended-thinking
//	[CC] ChatCompletionMessageParam: src/resources/chat/completions/completions.ts of openai-node
//	[FC] Function calling, platform.openai.com/docs/guides/function-calling
//	[RI] ResponseInputItem: src/resources/responses/responses.ts of openai-node
//
// Text in quotation marks after "error:" is what the API answers if the rule is broken.
//
// The package must never be part of a program: only tests import it.
package apirules

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// report collects what breaks rules.
type report struct {
	at    string // the message under test
	found []string
}

func (r *report) add(format string, args ...any) {
	r.found = append(r.found, r.at+": "+fmt.Sprintf(format, args...))
}

// object holds the members of a JSON object.
type object map[string]json.RawMessage

// objectOf parses a JSON object, nil for another value.
func objectOf(v json.RawMessage) object {
	var o object
	if kind(v) != '{' || json.Unmarshal(v, &o) != nil {
		return nil
	}
	return o
}

// kind is the first byte of a JSON value, 0 if there is none.
func kind(v json.RawMessage) byte {
	if v = bytes.TrimLeft(v, " \t\r\n"); len(v) > 0 {
		return v[0]
	}
	return 0
}

func listOf(v json.RawMessage) (all []json.RawMessage) {
	if kind(v) == '[' {
		_ = json.Unmarshal(v, &all)
	}
	return all
}

// text is a member that is a string; ok is false if it is none.
func (o object) text(key string) (s string, ok bool) {
	ok = kind(o[key]) == '"' && json.Unmarshal(o[key], &s) == nil
	return s, ok
}

// only reports members beyond those allowed.
func (r *report) only(o object, what string, allowed ...string) {
	var others []string
	for key := range o {
		if !slices.Contains(allowed, key) {
			others = append(others, key)
		}
	}
	if slices.Sort(others); len(others) > 0 {
		r.add("%s has the unknown members %v", what, others)
	}
}

// filled reports a member that is not a string with more than white space.
func (r *report) filled(o object, what, key string) (s string) {
	s, ok := o.text(key)
	if !ok || strings.TrimSpace(s) == "" {
		r.add("%s has no %s", what, key)
	}
	return s
}

var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// image reports data that is not base64, or no image that both APIs take.
//
// [MT] Base64ImageSource. OpenAI takes the same four types: platform.openai.com/docs/guides/images-vision.
func (r *report) image(mediaType, data string) {
	if !slices.Contains(imageTypes, mediaType) {
		r.add("an image of type %q", mediaType)
	}
	r.base64("an image", data)
}

func (r *report) base64(what, data string) {
	if _, err := base64.StdEncoding.Strict().DecodeString(data); err != nil || data == "" || strings.ContainsAny(data, "\r\n") {
		r.add("%s without base64 data", what)
	}
}

// dataURL reports an image_url that is neither an address nor an image in a data URL.
func (r *report) dataURL(url string) {
	head, data, ok := strings.Cut(url, ";base64,")
	media, isData := strings.CutPrefix(head, "data:")
	switch {
	case ok && isData:
		r.image(media, data)
	case !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://"):
		r.add("an image_url that is no URL")
	}
}

// toolName is the pattern of names of functions, and of ids of calls.
//
// [FC], [MT]. error: "Invalid 'messages[9].tool_calls[0].function.name': string does not match pattern. Expected a string
// that matches the pattern '^[a-zA-Z0-9_-]+$'."
// error: "messages.5.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'".
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// name reports a name that is not one of a tool. limit is its greatest length in bytes.
func (r *report) name(what, name string, limit int) {
	if !toolName.MatchString(name) || len(name) > limit {
		r.add("%s %q does not match %s, at most %d bytes", what, name, toolName, limit)
	}
}
