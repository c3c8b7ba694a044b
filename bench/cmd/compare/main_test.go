package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/bench/report"
	"github.com/ctxdir/ctxdir/bench/rows"
)

// TestMain lets the test program be a worker: see rows.Worker.
func TestMain(m *testing.M) {
	if rows.Worker() {
		return
	}
	os.Exit(m.Run())
}

// TestQuick runs everything small. It asserts no timing: only that every row gives figures for every engine it is to
// be measured with, and that the report says nothing about where it was made.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	out := t.TempDir()
	// The stores are made in this folder: the system's temporary one may be in memory.
	if err := run(context.Background(), []string{"-quick", "-rounds", "1", "-out", out, "-testdata", "../../../testdata"}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, res := range r.Results {
		seen[res.Key] = true
		if len(res.Cells) == 0 {
			t.Errorf("%s at %s has no figures", res.Row, res.At)
		}
		if (res.Goal == "") != (len(res.Checks) == 0) {
			t.Errorf("%s at %s has the goal %q and %d checks", res.Row, res.At, res.Goal, len(res.Checks))
		}
		for _, c := range res.Cells {
			if c.Value <= 0 {
				t.Errorf("%s at %s, %s: %v", res.Row, res.At, c.Name, c.Value)
			}
			if c.Errors > 0 {
				t.Errorf("%s at %s, %s: %d errors: %s", res.Row, res.At, c.Name, c.Errors, c.Err)
			}
		}
	}
	for _, row := range rows.All {
		if !seen[row.Name] {
			t.Errorf("row %s is missing", row.Name)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{".stores-", os.TempDir() + "/", host} {
			if len(word) > 4 && strings.Contains(string(b), word) {
				t.Errorf("%s mentions %s", filepath.Base(f), word)
			}
		}
	}
	if left, _ := filepath.Glob(".stores-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
