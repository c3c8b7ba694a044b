package attach

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/plain"
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
		if got := SafeName(name); got != want {
			t.Errorf("%q is called %q, wanted %q", name, got, want)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		name := SafeName(
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
					len(part) > maxNameBytes+1 || plain.OneLine(part) != part ||
					deviceName.MatchString(part) || safePart(part) != part) {
				r.Fatalf("part %q of %q", part, name)
			}
		}
	})
}
