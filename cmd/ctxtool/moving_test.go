package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/go-cmp/cmp"
)

// today is a number that changes from day to day.
func today() int { return int(time.Now().Unix() / (24 * 60 * 60)) }

// claudeSessions are session files of Claude Code: samples, and the real ones that CTXDIR_TEST_DATA names.
func claudeSessions(t *testing.T, real bool) (paths []string) {
	t.Helper()
	patterns := []string{
		"testdata/histories/claude-monday.jsonl", "../../testdata/claude-code/*.jsonl", "../../importer/testdata/claude-code/*.jsonl",
	}
	if real {
		dir := os.Getenv("CTXDIR_TEST_DATA")
		if dir == "" {
			t.Skip("CTXDIR_TEST_DATA names no folder of real histories")
		}
		patterns = []string{filepath.Join(dir, "claude-code", "*", "*"), filepath.Join(dir, "multimodal", "*", "*")}
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	if real && testing.Short() { // a third, and others on another day
		var third []string
		for i := today() % 3; i < len(paths); i += 3 {
			third = append(third, paths[i])
		}
		return third
	}
	return paths
}

// objectsIn returns the objects of a file of lines, also several on one line, in one spelling of white space.
func objectsIn(t *testing.T, path string) (objects []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(bytes.TrimPrefix(b, []byte("\ufeff")), []byte{0}, []byte("\n")) // blocks of zeros, as after a crash
	for line := range bytes.Lines(b) {
		d := json.NewDecoder(bytes.NewReader(line))
		for {
			var v json.RawMessage
			if d.Decode(&v) != nil {
				break
			}
			if v, err := message.Compact(v); err == nil {
				objects = append(objects, string(v))
			}
		}
	}
	return objects
}

// importAlone imports a file into a new store, and returns the id of its only context.
func importAlone(t *testing.T, path string) (p *inProcess, id string) {
	t.Helper()
	p = newInProcess(t)
	if code := p.run(t.Context(), "", "--json", "import", path); code != exitOK && code != exitProblems {
		t.Fatalf("%s: %s", path, p.stderr.String())
	}
	var r importedRecord
	if err := json.Unmarshal([]byte(strings.SplitN(p.stdout.String(), "\n", 2)[0]), &r); err != nil || r.Context == "" {
		t.Fatalf("%s: %v: %s", path, err, p.stdout.String())
	}
	return p, r.Context
}

// TestExportUnchanged: an unchanged session comes out with the same records in the same order, each with its spelling.
func TestExportUnchanged(t *testing.T) { exportsUnchanged(t, claudeSessions(t, false)) }

func TestRealExportUnchanged(t *testing.T) { exportsUnchanged(t, claudeSessions(t, true)) }

func exportsUnchanged(t *testing.T, paths []string) {
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, id := importAlone(t, path)
			out := filepath.Join(t.TempDir(), "session.jsonl")
			if code := p.run(t.Context(), "", "export", id, "--format", "claude-code", "-o", out); code != 0 {
				t.Fatal(p.stderr.String())
			}
			if d := cmp.Diff(objectsIn(t, path), objectsIn(t, out)); d != "" {
				t.Errorf("%.3000s", d)
			}
		})
	}
}

// TestMoves: a session that moves to Codex and back keeps every text of the user and the assistant, in order.
func TestMoves(t *testing.T) { moves(t, claudeSessions(t, false)) }

func TestRealMoves(t *testing.T) { moves(t, claudeSessions(t, true)) }

func moves(t *testing.T, paths []string) {
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, id := importAlone(t, path)
			want := spokenIn(t, p, id)
			for _, format := range []string{"codex", "claude-code"} {
				out := filepath.Join(t.TempDir(), "session.jsonl")
				if code := p.run(t.Context(), "", "export", id, "--format", format, "-o", out); code != 0 {
					t.Fatal(p.stderr.String())
				}
				p, id = importAlone(t, out)
				if d := cmp.Diff(want, spokenIn(t, p, id)); d != "" {
					t.Errorf("as %s: %.3000s", format, d)
				}
			}
		})
	}
}

// spokenIn returns the texts of the user and the assistant on the active branch of a context.
func spokenIn(t *testing.T, p *inProcess, id string) (texts []string) {
	t.Helper()
	if code := p.run(t.Context(), "", "--json", "show", id); code != 0 {
		t.Fatal(p.stderr.String())
	}
	for line := range strings.Lines(p.stdout.String()) {
		var r struct {
			Role    string
			Message json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if message.IsBookkeeping(r.Role) || transcript.Bookkeeping(r.Message) {
			continue
		}
		parts := transcript.Parts(r.Message)
		voice := transcript.VoiceOf(r.Role, parts)
		for _, part := range parts {
			said := voice == transcript.User || voice == transcript.Assistant
			if text := strings.TrimSpace(part.Text); part.Kind == transcript.Text && text != "" && said {
				texts = append(texts, voice+": "+text)
			}
		}
	}
	return texts
}
