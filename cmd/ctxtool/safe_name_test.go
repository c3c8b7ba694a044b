package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/term"
	"pgregory.net/rapid"
)

// TestSafeNames: a file name from a message stays in its folder, is visible, and means no device.
func TestSafeNames(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.png": "a/b.png", `a\b.png`: "a/b.png", "../../etc/passwd": "etc/passwd", "-rf": "rf", "--": "",
		".bashrc": "bashrc", "a/.ssh/-x": "a/ssh/x", "...": "",
		"con": "_con", "NUL.txt": "_NUL.txt", "com1.tar.gz": "_com1.tar.gz", "COM¹": "_COM¹", "console": "console",
		"lpt1 .txt": "_lpt1 .txt", "a. . ": "a", "a:b|c?": "a_b_c_",
		"x\u202egnp.exe": "xgnp.exe", "x\u200by\ufeff": "xy", "x\x1b[31m\u009b": "x[31m", "x\u2028y\n": "xy", "\xff": "_", "": "", "/": "",
		strings.Repeat("é", 150) + ".png": strings.Repeat("é", 98) + ".png", strings.Repeat("x", 300): strings.Repeat("x", 200),
		strings.Repeat("d/", 50) + "f": strings.Repeat("d/", 8) + "f",
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q is called %q, wanted %q", name, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		name := safeName(
			rapid.OneOf(
				rapid.String(),
				rapid.StringMatching(`[-. /\\a:]{0,30}`),
				rapid.StringMatching(`(?i)(con|aux|lpt1|-|\.| )*(\.x)?`),
			).Draw(
				r,
				"name",
			),
		)
		if len(name) > (maxNameBytes+2)*(maxNameFolders+1) || name != "" && !filepath.IsLocal(name) {
			r.Fatalf("%q", name)
		}
		for part := range strings.SplitSeq(name, "/") {
			if name != "" &&
				(part == "" || strings.ContainsAny(part[:1], "-. ") || strings.ContainsAny(part[len(part)-1:], ". ") ||
					len(part) > maxNameBytes+1 || term.OneLine(part) != part ||
					deviceName.MatchString(part) || safePart(part) != part) {
				r.Fatalf("part %q of %q", part, name)
			}
		}
	})
}

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
			if part := path.Base(filepath.ToSlash(at)); safePart(part) != part {
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
