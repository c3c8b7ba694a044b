package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/redact"
)

// secret is put together here, so that no file has one that a scanner would find.
const secret = "ghp_" + "a8Kd92mXq0" + "Lz7Rw4Vt1Y" + "Bn6Hc3Js5P" + "eUfGi8"

var (
	image  = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x89PNG not a real one: \x00\x01\xfe\x7f 0123456789 AZaz", 9)))
	bodies = []string{
		`{"role":"user","content":"Clone /home/ada/lake with ` + secret + ` and mail ada@lake.example"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"On build.corp?"},{"type":"tool_use","id":"t1","name":"Bash",` +
			`"input":{"command":"TOKEN=` + secret + ` git clone","at":"C:\\Users\\ada\\x"}},{"type":"tool_use","id":"t2","name":"Edit",` +
			`"input":{"file_path":"/home/ada/a.txt","old_string":"one","new_string":"Heron ` + secret + `"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"as ada@lake.example"},` +
			`{"type":"tool_result","tool_use_id":"t2","content":"` + secret + `","is_error":true}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}`,
	}
	hidden = []string{secret, "/home/ada", `\Users`, "ada@", "build.corp", image, "Heron"}
)

// made is a context with the messages above, and a branch with another answer.
func made(t *testing.T) *ctxdir.Context {
	t.Helper()
	ctx := t.Context()
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Create(ctx, ctxdir.Metadata{Title: "Of ada@lake.example"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	add := func(b *ctxdir.Branch, body string) {
		if _, err := b.Append(ctx, ctxdir.Draft{Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range bodies {
		add(c.Active(), body)
	}
	alt, err := c.Active().Fork(ctx, "of-Heron", 1)
	if err != nil {
		t.Fatal(err)
	}
	add(alt, `{"role":"assistant","content":"Another answer"}`)
	return c
}

// redactable are the formats in which secrets can be replaced.
var redactable = []Format{HTML, Markdown, JSONL}

func written(t *testing.T, write func(ctx context.Context, b *bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRedacted: no format has a secret, each has the marks, and what is replaced is reported with its message.
func TestRedacted(t *testing.T) {
	c := made(t)
	for _, f := range redactable {
		for _, tools := range []string{ToolsFull, ToolsShort, ToolsNone} {
			kinds := map[redact.Kind]int{}
			at := map[int64]bool{}
			o := Options{
				Format: f, Tools: tools, Redact: &redact.Options{Kinds: redact.Kinds, Words: []string{"heron"}},
				Found: func(m *ctxdir.Message, _ string, f redact.Finding) {
					kinds[f.Kind]++
					if m != nil {
						at[m.Position] = true
					}
				},
			}
			got := written(t, func(ctx context.Context, b *bytes.Buffer) error { return AllBranches(ctx, b, c, o) })
			for _, h := range hidden {
				if strings.Contains(got, h) {
					t.Errorf("%s, tools %s: has %s", f, tools, h)
				}
			}
			if f == HTML && strings.Contains(got, "<img") {
				t.Error("an image without its content")
			}
			for k, n := range kinds {
				if f != HTML || k != redact.Base64 { // an image gives way to its name
					if marks := strings.Count(got, k.Replacement()); tools == ToolsFull && marks < n-2 || n > 0 && marks == 0 {
						t.Errorf("%s, tools %s: %d marks for %d findings %s", f, tools, marks, n, k)
					}
				}
			}
			if kinds[redact.Path] == 0 || kinds[redact.Mail] == 0 || kinds[redact.Token] == 0 || !at[0] {
				t.Errorf("%s, tools %s: found %v at %v", f, tools, kinds, at)
			}
			if f == JSONL {
				for line := range strings.Lines(got) {
					if !json.Valid([]byte(line)) {
						t.Errorf("no JSON: %s", line)
					}
				}
			}
		}
	}
}

// TestVerbatim: without redaction nothing is replaced, and JSON Lines has the bodies byte for byte.
func TestVerbatim(t *testing.T) {
	c := made(t)
	got := written(t, func(ctx context.Context, b *bytes.Buffer) error {
		return Branch(ctx, b, c, c.Active(), Options{Format: JSONL})
	})
	if want := strings.Join(bodies, "\n") + "\n"; got != want {
		t.Errorf("got %s", got)
	}
	got = written(t, func(ctx context.Context, b *bytes.Buffer) error {
		return Branch(ctx, b, c, c.Active(), Options{Format: HTML})
	})
	for _, want := range []string{secret, "ada@lake.example", "base64," + image} {
		if !strings.Contains(got, want) {
			t.Errorf("no %.40s", want)
		}
	}
	if strings.Contains(got, "[token]") {
		t.Error("it has a mark")
	}
}

// TestSomeKinds: an image stays if base64 may.
func TestSomeKinds(t *testing.T) {
	c := made(t)
	got := written(t, func(ctx context.Context, b *bytes.Buffer) error {
		return Branch(ctx, b, c, c.Active(), Options{Format: HTML, Redact: &redact.Options{Kinds: []redact.Kind{redact.Token}}})
	})
	if strings.Contains(got, secret) || !strings.Contains(got, "base64,"+image) || !strings.Contains(got, "ada@") {
		t.Error("not only tokens are replaced")
	}
}

// TestAllBranches: each message is there once, and no two of a page have the same id.
func TestAllBranches(t *testing.T) {
	c := made(t)
	for _, f := range redactable {
		got := written(t, func(ctx context.Context, b *bytes.Buffer) error { return AllBranches(ctx, b, c, Options{Format: f}) })
		if n := strings.Count(got, "Clone"); n != 1 {
			t.Errorf("%s: the first message %d times", f, n)
		}
		if n := strings.Count(got, "Another answer"); n != 1 {
			t.Errorf("%s: the answer of the other branch %d times", f, n)
		}
		if f == HTML && (!strings.Contains(got, `id="b2-m1"`) || strings.Count(got, `id="m1"`) != 1) {
			t.Error("ids of messages are not unique")
		}
		if f == Markdown && !strings.Contains(got, "\n# Branch of-Heron, from message 1\n") {
			t.Errorf("no heading for the branch: %s", got)
		}
	}
}

// TestOptions: options that cannot be used are errors.
func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Format: "pdf"}, {}, {Format: HTML, Tools: "some"}, {Format: JSONL, Redact: &redact.Options{Kinds: []redact.Kind{"x"}}},
		{Format: OpenAI, Redact: &redact.Options{}},
	} {
		if err := o.Check(); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestOnlyRedactedTexts: what a format gets has no text that package redact did not make.
func TestOnlyRedactedTexts(t *testing.T) {
	free := []string{"voice", "changed", "media"} // one of few words each
	for _, is := range []reflect.Type{reflect.TypeFor[turn](), reflect.TypeFor[part]()} {
		for i := range is.NumField() {
			f := is.Field(i)
			of := f.Type
			for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			numbers := []reflect.Kind{reflect.Int, reflect.Int64, reflect.Bool}
			ok := slices.Contains(numbers, of.Kind()) || of == reflect.TypeFor[redact.Text]() || of == reflect.TypeFor[part]() ||
				of.String() == "time.Time"
			if !ok && !slices.Contains(free, f.Name) {
				t.Errorf("%s.%s is a %s", is.Name(), f.Name, f.Type)
			}
		}
	}
}

// TestFormsOfOneBranch: of the forms of tools, only that of Claude Code takes all branches.
func TestFormsOfOneBranch(t *testing.T) {
	c := made(t)
	for _, f := range []Format{OpenAI, Anthropic, ClaudeCode, Codex, ChatGPT} {
		var b bytes.Buffer
		err := AllBranches(t.Context(), &b, c, Options{Format: f})
		if errors.Is(err, ErrOptions) != (f != ClaudeCode) {
			t.Errorf("%s: %v", f, err)
		}
		if err := Branch(t.Context(), &b, c, c.Active(), Options{Format: f}); err != nil || !strings.Contains(b.String(), "Clone ") {
			t.Errorf("%s: %v: %s", f, err, b.String())
		}
	}
}
