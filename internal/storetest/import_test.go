package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/importing"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// realFiles returns the files of the real conversations below a folder, and skips where there are none.
func realFiles(t *testing.T, folders ...string) []string {
	t.Helper()
	root := os.Getenv("CTXDIR_TEST_DATA")
	if root == "" {
		t.Skip("CTXDIR_TEST_DATA names no folder with real conversations")
	}
	var files []string
	for _, f := range folders {
		_ = filepath.WalkDir(filepath.Join(root, f), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(filepath.Base(path), ".json") {
				files = append(files, path)
			}
			return nil
		})
	}
	if len(files) == 0 {
		t.Skipf("no files below %s", root)
	}
	return files
}

// imported imports a file and returns every message that some branch shows, once, and what was reported.
func imported(t *testing.T, s *engine.Store, path string) (results []importer.Result, bodies map[uuid.UUID]string, problems int) {
	t.Helper()
	ctx := context.Background()
	bodies = map[uuid.UUID]string{}
	for r, err := range importer.Import(ctx, importing.New(s), path, importer.Options{Problem: func(importer.Problem) { problems++ }}) {
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		results = append(results, r)
		c, err := s.Context(ctx, r.Context)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range c.Metadata().Branches {
			open, err := c.Branch(b.Name)
			if err != nil {
				t.Fatal(err)
			}
			for m, err := range open.Messages(ctx) {
				if err != nil || m.Unavailable != nil {
					t.Fatal(err, m)
				}
				bodies[m.ID] = kit.BodyOf(m)
			}
		}
		if raw, err := json.Marshal(c.Metadata()); err != nil || len(raw) > 100_000 && r.Branches < 50 {
			t.Errorf("%s: metadata.json has %d bytes (%v)", path, len(raw), err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return results, bodies, problems
}

// TestRealTranscripts puts real transcripts through a real store: every record is there once, verbatim; again
// adds nothing. That the records are the right ones is the subject of package importer's own tests.
func TestRealTranscripts(t *testing.T) {
	for _, path := range realFiles(t, "claude-code", "multimodal", "chatgpt") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := kit.Init(t.TempDir(), engine.WithDurability(engine.Relaxed))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			results, bodies, _ := imported(t, s, path)
			var messages int64
			for _, r := range results {
				messages += r.Messages
				if r.Added != r.Messages || r.Skipped != 0 {
					t.Errorf("the first import: %+v", r)
				}
			}
			if int64(len(bodies)) != messages {
				t.Errorf("%d messages are reachable, %d were imported", len(bodies), messages)
			}
			again, _, _ := imported(t, s, path)
			for _, r := range again {
				if r.Added != 0 || r.Skipped != r.Messages {
					t.Errorf("the second import: %+v", r)
				}
			}
		})
	}
}

// TestImportEarlierThenLater: importing a session's earlier state and then its later one equals importing the
// later one alone.
func TestImportEarlierThenLater(t *testing.T) {
	var earlier, later string
	for _, f := range realFiles(t, "claude-code") {
		switch {
		case strings.Contains(f, "71__69f9710768__0"):
			earlier = f
		case strings.Contains(f, "e0__12b8e855d7__0"):
			later = f
		}
	}
	if earlier == "" || later == "" {
		t.Skip("the pair of states is not there")
	}
	var shows []string
	for _, files := range [][]string{{earlier, later}, {later}} {
		s, err := kit.Init(t.TempDir(), engine.WithDurability(engine.Relaxed))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			imported(t, s, f)
		}
		var b strings.Builder
		for sum := range listing.New(s).List(context.Background(), listing.ListOptions{}) {
			c, err := s.Context(context.Background(), sum.ID)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(sum.ID.String() + sum.Title + sum.ActiveBranch)
			for _, br := range c.Metadata().Branches {
				open, _ := c.Branch(br.Name)
				ms, err := open.Load(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("\n" + br.Name)
				for _, m := range ms {
					b.WriteString("\n" + m.ID.String() + kit.BodyOf(m))
				}
			}
			_ = c.Close()
		}
		shows = append(shows, b.String())
		_ = s.Close()
	}
	if shows[0] != shows[1] {
		t.Error("the two ways differ")
	}
}

// TestRealTranscriptsAtEveryThreshold: whatever is moved to blobs, each record comes back byte for byte: the same for
// every threshold, and, of transcripts, a line of one. (A session brings the files of its agents along.)
func TestRealTranscriptsAtEveryThreshold(t *testing.T) {
	lines := map[string]bool{}
	for _, path := range realFiles(t, "claude-code", "multimodal") {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(raw) {
			var record json.RawMessage // some lines hold two
			for d := json.NewDecoder(bytes.NewReader(line)); d.Decode(&record) == nil; {
				if b, err := message.Compact(record); err == nil {
					lines[string(b)] = true
				}
			}
		}
	}
	for _, path := range realFiles(t, "claude-code", "multimodal", "chatgpt") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var first map[uuid.UUID]string
			damaged := false // of a damaged line the importer takes what is whole
			for _, threshold := range []int64{0, 1 << 10, -1} {
				s, err := kit.Init(t.TempDir(), engine.WithDurability(engine.Relaxed), engine.WithTextThreshold(threshold))
				if err != nil {
					t.Fatal(err)
				}
				_, bodies, problems := imported(t, s, path)
				damaged = damaged || problems > 0
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = bodies
				}
				if len(bodies) != len(first) {
					t.Errorf("threshold %d: %d messages, wanted %d", threshold, len(bodies), len(first))
				}
				for id, body := range bodies {
					if body != first[id] {
						t.Errorf("threshold %d: %s is %.100s, wanted %.100s", threshold, id, body, first[id])
					}
				}
			}
			if filepath.Ext(path) != ".jsonl" || damaged {
				return
			}
			for id, body := range first {
				if !lines[body] {
					t.Errorf("%s is no line of a transcript: %.200s", id, body)
				}
			}
		})
	}
}
