package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/legacytest"
)

// TestMigrateFlips migrates a folder of files that differ from a legacy context in one bit each. Every one is migrated,
// or makes the exit status 3.
func TestMigrateFlips(t *testing.T) {
	whole, dir := legacytest.Whole(legacytest.ID(500)), t.TempDir()
	step := 29
	if testing.Short() {
		step *= 9
	}
	wanted := map[string]bool{}
	for bit := 0; bit < 8*len(whole); bit += step {
		b := []byte(whole)
		b[bit/8] ^= 1 << (bit % 8)
		path := filepath.Join(dir, fmt.Sprintf("bit-%d.json", bit))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		wanted[path] = true
	}
	p := newInProcess(t)
	if code := p.run(t.Context(), "", "--json", "migrate", "--dry-run", dir); code != exitProblems {
		t.Errorf("exit status %d, %s", code, p.stderr.String())
	}
	records := map[string]int{}
	for line := range strings.Lines(p.stdout.String()) {
		var r struct {
			Record, Path string
			Validated    bool
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		records[r.Record]++
		if r.Record == "failed" || r.Record == "migrated" && r.Validated {
			delete(wanted, r.Path)
		}
	}
	if len(wanted) > 0 || records["failed"] == 0 || records["migrated"] == 0 {
		t.Errorf("%v; passed over: %v", records, wanted)
	}
	t.Log(records)
}
