package importer

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var tContext = context.Background()

// seeds are the fixtures.
func seeds(f *testing.F, dirs ...string) {
	f.Helper()
	for _, dir := range dirs {
		if !strings.HasPrefix(dir, "testdata") {
			dir = filepath.Join(fixtures, dir)
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			f.Add(b)
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
	}
}

// fuzz imports bytes twice: it ends, without an error that is about anything but the bytes, and the second
// time finds what the first stored.
func fuzz(f *testing.F, format Format) {
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := newFakeStore()
		var added int64
		for r, err := range Import(tContext, s, path, Options{Format: format, MaxRecord: 1 << 16}) {
			if err != nil && r.Added > 0 {
				t.Fatal(err)
			}
			added += r.Added
		}
		n := int64(0)
		s.each(func(r Record) {
			n++
			if r.Body[0] != '{' || bytes.ContainsAny(r.Body, "\n\x00") {
				t.Fatalf("stored %q", r.Body)
			}
		})
		if n != added {
			t.Fatalf("stored %d, said %d", n, added)
		}
		for r := range Import(tContext, s, path, Options{Format: format, MaxRecord: 1 << 16}) {
			if r.Added > 0 {
				t.Fatalf("again: %+v", r)
			}
		}
	})
}

func FuzzClaudeCode(f *testing.F) {
	seeds(f, "claude-code")
	fuzz(f, ClaudeCode)
}

func FuzzChatGPT(f *testing.F) {
	seeds(f, "chatgpt")
	f.Add([]byte(exportOf("b", "a<c", "b<a", "c<b", "d<nowhere")))
	fuzz(f, ChatGPT)
}

func FuzzOpenAI(f *testing.F) {
	seeds(f, "openai")
	fuzz(f, OpenAI)
}

func FuzzJSONL(f *testing.F) {
	seeds(f, "jsonl", "claude-code")
	fuzz(f, JSONL)
}

func FuzzAuto(f *testing.F) {
	seeds(f, ".", "testdata")
	fuzz(f, Auto)
}

// fuzzTool begins with the samples of a tool.
func fuzzTool(f *testing.F, format Format) {
	seeds(f, "testdata/"+string(format))
	fuzz(f, format)
}

func FuzzCodex(f *testing.F)         { fuzzTool(f, Codex) }
func FuzzOpenCode(f *testing.F)      { fuzzTool(f, OpenCode) }
func FuzzGemini(f *testing.F)        { fuzzTool(f, Gemini) }
func FuzzCopilot(f *testing.F)       { fuzzTool(f, Copilot) }
func FuzzPi(f *testing.F)            { fuzzTool(f, Pi) }
func FuzzOpenHands(f *testing.F)     { fuzzTool(f, OpenHands) }
func FuzzSWEAgent(f *testing.F)      { fuzzTool(f, SWEAgent) }
func FuzzMiniSWEAgent(f *testing.F)  { fuzzTool(f, MiniSWEAgent) }
func FuzzOpenAssistant(f *testing.F) { fuzzTool(f, OpenAssistant) }
func FuzzLibreChat(f *testing.F)     { fuzzTool(f, LibreChat) }
