package importer

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

var tContext = context.Background()

// seeds are the fixtures.
func seeds(f *testing.F, dirs ...string) {
	f.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(fixtures, dir), func(path string, d fs.DirEntry, err error) error {
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
	seeds(f, ".")
	fuzz(f, Auto)
}
