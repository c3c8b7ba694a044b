package mcp_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/mcp"
)

// TestQuestions asks questions over real histories, whose answers somebody looked up: recall has to hold nine in ten within its
// budget. The file is a list of {"question": TEXT, "has": [TEXT…]}: the answer holds all of these texts. Neither the questions
// nor the histories belong into the repository.
func TestQuestions(t *testing.T) {
	file, data := os.Getenv("CTXDIR_TEST_QUESTIONS"), os.Getenv("CTXDIR_TEST_DATA")
	if file == "" || data == "" {
		t.Skip("CTXDIR_TEST_QUESTIONS names no file with questions, or CTXDIR_TEST_DATA no folder with the histories")
	}
	var questions []struct {
		Question string
		Has      []string
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &questions)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := ctxdir.Init(t.TempDir(), ctxdir.Options{RelaxedDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	err = filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			for range importer.Import(t.Context(), s.Importer(), path, importer.Options{}) { // it stores what can be read
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	k := newKit(t, s, mcp.Options{})
	answered := 0
	for _, q := range questions {
		args, _ := json.Marshal(map[string]any{"question": q.Question, "all": true})
		text := k.has("recall", string(args))
		missing := 0
		for _, has := range q.Has {
			if !strings.Contains(text, has) {
				missing++
			}
		}
		if missing == 0 {
			answered++
		} else {
			t.Logf("not in the answer: %s", q.Question)
		}
	}
	t.Logf("recall holds the answers of %d of %d questions", answered, len(questions))
	if answered*10 < len(questions)*9 {
		t.Error("these are too few")
	}
}

// TestRecallsSpeech: what people and models said is not drowned by calls of tools and their results with the same words, a long
// message does not hide its best part, and tools=true shows what tools answered.
func TestRecallsSpeech(t *testing.T) {
	s := newStore(t)
	k := newKit(t, s, mcp.Options{})
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	add := func(format string, text string) {
		b, _ := json.Marshal(text)
		body := strings.ReplaceAll(format, "TEXT", string(b))
		if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
	}
	said := func(text string) { add(`{"role":"assistant","content":TEXT}`, text) }
	for i := range 150 {
		line := strings.Repeat("staging port heron database staging port ", 3) + string(rune('a'+i%26)) + strings.Repeat("x", i)
		add(`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":TEXT}}]}`, line)
		add(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":TEXT}]}`, "result "+line)
		if i == 75 {
			said("The staging database listens on 54377.")
		}
	}
	var report strings.Builder
	for i := range 60 {
		fmt.Fprintf(&report, "Part %d of the report on what was seen near the bridge of the staging database.\n", i)
	}
	said(report.String() + "The bridge of the staging database is called ibis: bridge, staging, database.")
	k.has("recall", `{"question":"which port does the staging database use"}`, "54377", "not", "[result]", "[Bash]")
	k.has("recall", `{"question":"what is the bridge of the staging database called"}`, "ibis", "not", "(cut, ")
	k.has("recall", `{"question":"which port does the staging database use","tools":true}`, "[result]")
}
