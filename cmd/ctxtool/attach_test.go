package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/attach"
	"github.com/ctxdir/ctxdir/internal/record"
)

// TestSaveUnderRudeNames: attached files get safe and distinct names below the folder, and replace no file.
func TestSaveUnderRudeNames(t *testing.T) {
	p := newInProcess(t)
	id := p.new(t)
	out := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(out, "link")); err != nil {
		t.Skip(err)
	}
	var lines []string
	for i, name := range []string{"-rf", ".profile", "a", "a/b", "A.png", "a.png", "a.png", "x\u202egnp.sh", "NUL", "../up", "\x1b[2J"} {
		data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0, byte(i)}, 500))
		lines = append(
			lines,
			string(
				record.Encode(
					map[string]any{
						"role": "user",
						"content": []any{
							map[string]any{
								"type":     "image",
								"filename": name,
								"source":   map[string]any{"type": "base64", "media_type": "image/png", "data": data},
							},
						},
					},
				),
			),
		)
	}
	if code := p.run(t.Context(), strings.Join(lines, "\n")+"\n", "append", id, "--jsonl"); code != 0 {
		t.Fatal(p.stderr.String())
	}
	for range 2 {
		if code := p.run(t.Context(), "", "show", id, "--save-attachments", out); code != 0 {
			t.Fatal(p.stderr.String())
		}
	}
	var names []string
	err := filepath.WalkDir(out, func(at string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, at)
			if part := path.Base(filepath.ToSlash(at)); attach.SafeName(part) != part {
				t.Errorf("%q was written", at)
			}
		}
		return err
	})
	if err != nil || len(names) != 2*len(lines) {
		t.Errorf("%d files, %v: %q", len(names), err, names)
	}
	if left, _ := os.ReadDir(filepath.Dir(outside)); len(left) > 0 {
		t.Errorf("outside: %v", left)
	}
}
