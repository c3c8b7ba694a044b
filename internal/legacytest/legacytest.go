// Package legacytest makes legacy contexts for tests: random ones of every generation, and damaged ones.
package legacytest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// ID returns the nth of a series of UUIDs.
func ID(n int) string {
	id := uuid.UUID{0: 0x0a, 6: 0x40, 8: 0x80}
	id[13], id[14], id[15] = byte(n>>16), byte(n>>8), byte(n)
	return id.String()
}

// Quote returns s as a JSON string.
func Quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Generation is a version of the legacy format.
type Generation struct {
	States []string // values of current_state
	Titled bool     // title, auto_generate_title, continuation_count
}

// Generations lists the known generations; the last one is a hypothetical future one.
var Generations = []Generation{
	{States: []string{`"Idle"`, `"AwaitingToolApproval"`, `{"Failed":{"error":"x"}}`, `"ProcessingUserMessage"`}},
	{States: []string{`"idle"`, `"awaiting_l_l_m_response"`, `{"awaiting_tool_approval":{"pending":["a"],"n":1.0}}`}, Titled: true},
	{
		States: []string{
			`{"failed":{"error":"x","at":1e3}}`,
			`{"failed_in_a_new_way":{"error":"x","n":12345678901234567890}}`,
			`null`,
			`[1,{"a":null}]`,
		},
		Titled: true,
	},
}

// object writes members, each `"name":value`.
func object(members ...string) string { return "{" + strings.Join(members, ",") + "}" }

func member(name, value string) string { return Quote(name) + ":" + value }

// Draw makes a monolithic legacy context. Its branches may share beginnings. Its keys may be no UUIDs, occur twice or
// be missing, and unknown members occur everywhere.
func Draw(t *rapid.T, id string) string {
	g := rapid.SampledFrom(Generations).Draw(t, "generation")
	keys := rapid.SliceOfNDistinct(rapid.Custom(drawKey), 0, 12, rapid.ID[string]).Draw(t, "keys")
	var pool []string
	for i, k := range keys {
		pool = append(pool, member(k, drawNode(t, keys, i)))
		if rapid.IntRange(0, 30).Draw(t, "shadow") == 0 {
			pool = append(pool, member(k, drawNode(t, keys, i)))
		}
	}
	pool = rapid.Permutation(pool).Draw(t, "order")
	var branches, names []string
	for i := range rapid.IntRange(0, 5).Draw(t, "branches") {
		name := rapid.OneOf(
			rapid.Just(
				"main",
			),
			rapid.Just("alt"),
			rapid.SampledFrom([]string{"", "Main", "odd/ näme", "CON", "unlisted", strings.Repeat("ü", 200), "a\x00b"}),
			rapid.StringN(0, 20, -1),
		).Draw(t, "name")
		if contains(names, name) {
			name += fmt.Sprint(i)
		}
		names = append(names, name)
		branches = append(branches, member(name, drawBranch(t, name, keys)))
	}
	active := "nowhere"
	if len(names) > 0 && rapid.IntRange(0, 5).Draw(t, "dangling") > 0 {
		active = rapid.SampledFrom(names).Draw(t, "active")
	}
	parent := rapid.SampledFrom([]string{"null", Quote(ID(9000)), `"elsewhere"`, "7"}).Draw(t, "parent")
	members := []string{
		member("id", Quote(id)), member("parent_id", parent), member("config", drawConfig(t)),
		member("message_pool", object(pool...)), member("active_branch_name", Quote(active)),
		member("current_state", rapid.SampledFrom(g.States).Draw(t, "state")),
	}
	if len(branches) > 0 || rapid.Bool().Draw(t, "none") {
		members = append(members, member("branches", object(branches...)))
	}
	if g.Titled {
		title := rapid.SampledFrom([]string{`"T"`, `null`, `""`, `"\u00fc\ud83d"`, `"a\/b"`}).Draw(t, "title")
		members = append(members, member("title", title), member("auto_generate_title", "true"), member("continuation_count", "3"))
	}
	if rapid.Bool().Draw(t, "new") {
		members = append(members, member("brand_new", "12345678901234567890"), member("legacy", `{"a":1.0}`), member("lines", `[]`))
	}
	return object(rapid.Permutation(members).Draw(t, "members")...)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func drawKey(t *rapid.T) string {
	n := rapid.IntRange(0, 40).Draw(t, "key")
	switch rapid.IntRange(0, 6).Draw(t, "form") {
	case 0:
		return strings.ToUpper(ID(n))
	case 1:
		return fmt.Sprintf("msg_%d/../ü", n)
	case 2:
		return rapid.StringN(0, 8, -1).Draw(t, "text")
	}
	return ID(n)
}

func drawNode(t *rapid.T, keys []string, i int) string {
	if rapid.IntRange(0, 40).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]string{`null`, `7.50`, `"text"`, `[]`, `{}`, `{"message":"none"}`, `{"message":null,"id":3}`}).Draw(t, "node")
	}
	parent := "null"
	switch {
	case i > 0 && rapid.Bool().Draw(t, "child"):
		parent = Quote(keys[i-1])
	case rapid.IntRange(0, 3).Draw(t, "lost") == 0:
		parent = Quote(ID(7777))
	}
	id := keys[i]
	if rapid.IntRange(0, 20).Draw(t, "other") == 0 {
		id = "another"
	}
	members := []string{member("id", Quote(id)), member("message", drawMessage(t)), member("parent_id", parent)}
	if rapid.IntRange(0, 5).Draw(t, "more") == 0 {
		members = append(members, member("x_unknown", `{"f":0.000003,"g":[null,1e5]}`))
	}
	return object(rapid.Permutation(members).Draw(t, "node order")...)
}

func drawMessage(t *rapid.T) string {
	role := rapid.SampledFrom([]string{"System", "User", "Assistant", "Tool", "Narrator"}).Draw(t, "role")
	text := rapid.StringN(0, 30, -1).Draw(t, "text")
	if rapid.IntRange(0, 5).Draw(t, "long") == 0 {
		text = strings.Repeat(text+"long ", 600)
	}
	content := []string{object(member("type", `"text"`), member("text", Quote(text)))}
	if rapid.IntRange(0, 3).Draw(t, "image") == 0 {
		image := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 20+rapid.IntRange(0, 3).Draw(t, "image"))
		content = append(
			content,
			object(member("type", `"image"`), member("url", Quote("data:image/png;base64,"+image)), member("detail", `"auto"`)),
		)
	}
	members := []string{
		member("role", Quote(role)),
		member("content", "["+strings.Join(content, ",")+"]"),
		member("metadata", drawMetadata(t)),
	}
	if role == "Assistant" && rapid.Bool().Draw(t, "calls") {
		members = append(
			members,
			member(
				"tool_calls",
				`[{"id":"c","tool_name":"read","arguments":["a",{"n":1.00}],"approval_status":"Pending",`+
					`"display_preference":"Default","ui_hints":null}]`,
			),
		)
	}
	if role == "Tool" || rapid.IntRange(0, 5).Draw(t, "result") == 0 {
		members = append(members, member("tool_result", `{"request_id":"c","result":{"$blob":"not a reference","lines":[1,2]}}`))
	}
	members = append(
		members,
		member("message_type", rapid.SampledFrom([]string{`"text"`, `"plan"`, `"tool_call"`, `"unheard_of"`}).Draw(t, "type")),
	)
	if rapid.IntRange(0, 4).Draw(t, "rich") == 0 {
		members = append(
			members,
			member(
				"rich_type",
				`{"kind":"streaming_response","data":{"chunks":[{"sequence":1,"delta":"a","accumulated_chars":1}],"average":8.220352564102564}}`,
			),
		)
	}
	return object(members...)
}

func drawMetadata(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		`null`,
		`{"created_at":"2025-11-09T15:41:41.442124Z","source":"a_i_generated","streaming":{"chunks_count":1249}}`,
		`{"created_at":"soon"}`,
		`{"extra":{"a":"\ud83d"}}`,
	}).Draw(t, "metadata")
}

func drawConfig(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		`{"model_id":"m","mode":"chat","parameters":{"temperature":0.70,"big":12345678901234567890}}`,
		`{"model_id":"m","mode":"chat","parameters":{},"system_prompt_id":"p","agent_role":"actor","workspace_path":"/a",` +
			`"later_key":[1,{"a":null}],"\u00fc":"\u00fc","<&>":"<&>"}`,
		`{}`,
		`null`,
		`"none"`,
	}).Draw(t, "config")
}

func drawBranch(t *rapid.T, name string, keys []string) string {
	var ids []string
	long := len(keys)
	if rapid.Bool().Draw(t, "part") {
		long = rapid.IntRange(0, len(keys)).Draw(t, "length")
	}
	for _, k := range keys[:long] {
		ids = append(ids, Quote(k))
	}
	if len(keys) > 0 {
		for range rapid.IntRange(0, 4).Draw(t, "others") { // any message, also repeated
			ids = append(ids, Quote(rapid.SampledFrom(keys).Draw(t, "other")))
		}
	}
	if rapid.IntRange(0, 6).Draw(t, "missing") == 0 {
		at := rapid.IntRange(0, len(ids)).Draw(t, "at")
		missing := []string{rapid.SampledFrom([]string{`"gone"`, Quote(ID(8888)), `null`, `1.50`}).Draw(t, "gone")}
		ids = append(ids[:at:at], append(missing, ids[at:]...)...)
	}
	prompt := rapid.SampledFrom([]string{
		`null`,
		`{"id":"p","content":"Be kind. \u00fc"}`,
		`{"id":"p","content":""}`,
		`{"content":"` + strings.Repeat("Sei nett. ", 300) + `","id":"q","new":1.0}`,
		`"a text"`,
		`""`,
		`{"id":"p"}`,
		`7`,
	}).Draw(t, "prompt")
	members := []string{
		member("name", Quote(name)), member("message_ids", "["+strings.Join(ids, ",")+"]"), member("system_prompt", prompt),
		member("user_prompt", rapid.SampledFrom([]string{`null`, `"x"`}).Draw(t, "user prompt")),
	}
	switch rapid.IntRange(0, 12).Draw(t, "variant") {
	case 0:
		members = append(members, member("x_branch", `{"a":1.0}`))
	case 1:
		members[0] = member("name", `"another"`)
	case 2:
		members = members[:1]
	}
	return object(rapid.Permutation(members).Draw(t, "branch order")...)
}

// Damage is a file that is not an intact legacy context.
type Damage struct {
	Name   string
	Text   string
	Legacy bool // a damaged legacy context, else an unknown file
}

// Whole returns a small context for tests to damage.
func Whole(id string) string {
	node := func(n int, parent string) string {
		return member(
			ID(n),
			object(
				member("id", Quote(ID(n))),
				member("message", `{"role":"User","content":[{"type":"text","text":"t"}],"metadata":null}`),
				member("parent_id", parent),
			),
		)
	}
	return object(
		member("id", Quote(id)),
		member("parent_id", "null"),
		member("config", `{"model_id":"m","mode":"chat","parameters":{}}`),
		member("message_pool", object(node(1, "null"), node(2, Quote(ID(1))))),
		member(
			"branches",
			object(
				member(
					"main",
					object(
						member("name", `"main"`),
						member("message_ids", "["+Quote(ID(1))+","+Quote(ID(2))+"]"),
						member("system_prompt", "null"),
						member("user_prompt", "null"),
					),
				),
			),
		),
		member("active_branch_name", `"main"`),
		member("current_state", `"idle"`),
	)
}

// Split returns the context.json of a split context, made from a small intact one.
func Split(whole string) string {
	before, rest, _ := strings.Cut(whole, `"message_pool":{`)
	_, behind, _ := strings.Cut(rest, `},"branches"`)
	return before + `"message_pool":{},"branches"` + behind
}

// Damaged returns files that no import can read, each under the name of a context with this id.
func Damaged(id string) []Damage {
	whole := Whole(id)
	pool := strings.Index(whole, `"message_pool"`)
	return []Damage{
		{"empty", "", true},
		{"zero bytes", strings.Repeat("\x00", 5000), true},
		{"a zero byte behind it", whole + "\x00", true},
		{"zero bytes at the end", whole[:len(whole)/2] + strings.Repeat("\x00", len(whole)/2), true},
		{"zero bytes in the midst", whole[:pool+200] + "\x00\x00" + whole[pool+202:], true},
		{"the first byte another one", "x" + whole[1:], true},
		{"the first bytes zero", strings.Repeat("\x00", 64) + whole[64:], true},
		{"a byte in the first name another one", whole[:1] + "\x00" + whole[2:], true},
		{"UTF-16", "\xff\xfe" + strings.Join(strings.Split(whole, ""), "\x00") + "\x00", true},
		{"cut in the id", whole[:20], true},
		{"cut before the pool", whole[:pool-3], true},
		{"cut in the pool", whole[:pool+100], true},
		{"cut before the last brace", whole[:len(whole)-1], true},
		{"two of them", whole + whole, true},
		{"two of them, on lines", whole + "\n" + whole + "\n", true},
		{"text behind it", whole + " and more", true},
		{"the pool twice", strings.TrimSuffix(whole, "}") + `,"message_pool":{}}`, true},
		{"the branches twice", strings.TrimSuffix(whole, "}") + `,"branches":{}}`, true},
		{"a branch that is none", strings.Replace(whole, `"main":{`, `"other":7,"main":{`, 1), true},
		{"a list that is none", strings.Replace(whole, `"message_ids":[`, `"message_ids":"x","x":[`, 1), true},
		{"no UTF-8 in a message", strings.Replace(whole, `"text":"t"`, "\"text\":\"\xff\"", 1), true},
		{"no UTF-8 in a key", strings.Replace(whole, `"config"`, "\"con\xfffig\"", 1), true},
		{"too deep", strings.Replace(whole, `"idle"`, strings.Repeat("[", 2000)+strings.Repeat("]", 2000), 1), true},
		{"no context", `{"messages":[]}`, true},
		{"an array", `[` + whole + `]`, true},
		{"a text", `"` + id + `"`, true},
		{"one of ours", `{"ctxdir":"context/1","message_pool":{},"id":"` + id + `"}`, false},
	}
}
