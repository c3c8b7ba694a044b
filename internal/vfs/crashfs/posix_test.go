package crashfs

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// newOS is the standard that crashfs is held to. Other systems name some errors differently.
func newOS(t *testing.T) vfs.FS {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("crashfs does what Linux does")
	}
	outer, err := vfs.OS(t.TempDir())
	check(t, err)
	defer outer.Close()
	check(t, outer.Mkdir("top")) // 0700, as every folder of the seam
	fsys, err := outer.Sub("top")
	check(t, err)
	return fsys
}

var posixCases = map[string]string{
	"create and read back": `
		open h f rwc; write h hello; readat h 1 3; readat h 3 9; readat h 9 1; stat h; lstat f; read h 5
		open g f r; read g 3; read g 9; read g 1; read g 0; cat f; readat g -1 2; writeat h -1 x`,
	"excl and missing": `
		open h f r; open h f rw; open h f rwcx; open h f rwcx; open h f wc; open h d/f rwc; open h f/x rwc; cat d; cat f/x`,
	"truncate on open": `open h f wc; write h abcdef; close h; open h f wt; stat h; write h x; cat f; open h f wct; cat f; open h g wt`,
	"append":           `open h f wca; write h ab; open g f wa; write g cd; write h ef; cat f; writeat h 0 x; trunc h 1; write g z; cat f`,
	"access modes": `
		open h f wc; write h abc; read h 2; readat h 0 2; open g f r; write g x; writeat g 0 x; trunc g 1; read g 9; sync g
		datasync g`,
	"sparse": `
		open h f rwc; writeat h 10000 end; stat h; readat h 9995 8; readat h 4090 12; trunc h 20; readat h 15 20; trunc h 5000
		readat h 4998 9; writeat h 4094 abcdef; readat h 4090 14; trunc h -1; trunc h 0; stat h; cat f`,
	"truncate clears": `open h f rwc; write h abcdefgh; trunc h 3; trunc h 8; readat h 0 8; write h z; readat h 0 20`,
	"mod time": `
		open h f rwc; mtime h 1000000000; stat h; lstat f; close h; open h f r; mtime h 1100000000; lstat f; rename f g
		lstat g`,
	"closed": `
		open h f rwc; close h; close h; read h 1; readat h 0 1; write h a; writeat h 0 a; trunc h 0; sync h; datasync h
		mtime h 5`,
	"mkdir": `
		mkdir d; mkdir d; mkdir d/e/f; mkdir d/e; mkdir d/e/; mkdir x/; ls .; ls d; open h f rwc; mkdir f; mkdir f/; mkdir f/g
		mkdir .; mkdir ''; mkdir d/.; mkdir z/.`,
	"folders as files": `
		mkdir d; open h d r; read h 5; readat h 0 5; stat h; write h x; sync h; datasync h; open h d rw; open h d w; open h d rwc; open h d rcx
		open h d rt; open h d rc; cat d; open h . r; stat h; open h . rwc; open h . rcx`,
	"lstat": `
		lstat .; lstat f; lstat ''; mkdir d; lstat d; lstat d/; lstat d/.; lstat ./d; lstat d//; open h f wc; lstat f/
		lstat f/.; lstat d/../f`,
	"readdir": `ls .; ls nope; mkdir d; mkdir d/sub; open h d/f wc; ls d; ls d/; ls ./d/.; ls d/f; remove d/f; ls d`,
	"remove": `
		remove f; mkdir d; open h d/f wc; remove d; remove d/f; remove d/; remove d; remove .; remove ''; open h f wc
		remove f/; remove f/x; remove f; remove f`,
	"escapes": `
		lstat ..; lstat ../x; mkdir d; lstat d/..; ls d/..; lstat d/../..; lstat d/../../d; open h /etc/passwd r; mkdir /x
		rename d ../d; rename ../d d; remove ..; ls /; open h f wc; lstat f/..; lstat nope/../d; mkdir d/e; lstat d/e/../../d
		lstat d/e/..; lstat ./.././d`,
	"unlinked": `open h f rwc; write h abc; remove f; readat h 0 3; write h de; stat h; sync h; open g f rwc; stat g; readat h 0 9; ls .`,
	"rename files": `
		rename f g; open h f rwc; write h one; rename f g; lstat f; cat g; open k f rwc; write k two; rename f g; cat g
		readat h 0 3; readat k 0 3; rename g g; cat g; rename g d/g; mkdir d; rename g d/g; cat d/g; lstat g; rename d/g d/h
		ls d; rename nope/x y; rename d/h d/h/x; rename d/h g/`,
	"rename folders": `
		mkdir a; mkdir a/b; open h a/b/f rwc; write h x; rename a z; cat z/b/f; lstat a; ls z; rename z/b b; cat b/f; ls z
		rename b z/b; rename z z/b/c; rename z z/q; mkdir e; rename z e; rename e z; rename z/b e; rename e e; open k file wc
		rename file e; rename e file; rename file e/; rename e new/; ls new; rename file/ y; rename file new2/
		rename nope new; rename . x; rename file .; rename . .; rename new .; rename new new/.; rename . file
		rename nope file/y; rename new file/`,
	"rename new": `
		renamenew f g; open h f rwc; write h x; renamenew f g; ls .; open h f rwc; renamenew f g; renamenew f f; cat g
		renamenew nope g; mkdir d; renamenew f d; renamenew d f; renamenew d e; ls .; renamenew e f/x; renamenew f e/f; ls e
		renamenew g e/f; renamenew e/f e/g; cat e/g; renamenew e e/x; renamenew g ../g`,
	"long name": "mkdir " + strings.Repeat("n", 255) + "; mkdir " + strings.Repeat("n", 256) +
		"; lstat " + strings.Repeat("n", 300) + "; lstat " + strings.Repeat("n", 300) + "/x",
	"replace": `
		replace f one; cat f; lstat f; replace f two; cat f; ls .; replace d/f x; mkdir d; replace d/f x; cat d/f; ls d
		replace d x; ls .; replace . x; ls .; replace '' x; replace ../f x; replace /f x; replace d/ x; ls .; ls d
		replace f/x y; open h f r; replace f three; read h 9; cat f; replace .. x; ls .`,
	"sub": `
		sub s d; mkdir d; open h f wc; sub s f; sub s d; @s mkdir e; ls d; @s open g e/f rwc; write g x; rename d z
		@s cat e/f; @s mkdir new; ls z; @s lstat ..; @s lstat ../f; @s rename e e2; stat g; cat z/e2/f; sub t z/e2; closefs s
		@s ls .; @s mkdir q; @t cat f; @t remove f; @t ls .; readat g 0 1; remove z/e2; @t ls .; @t mkdir x; @t open k x wc
		@t lstat .; @t syncdir .; rename f z/f; @t lstat x; @s lstat .; @s open q f r; @s remove f; @s rename new n; sub u .
		@u ls .; sub v ..`,
	"rename into a removed folder": `
		mkdir d; open h f wc; mkdir e; sub s d; @s mkdir a; @s remove a; remove d; @s open g f wc; @s replace r x
		@s syncdir .; ls .`,
	"sync": `syncdir .; syncdir d; mkdir d; syncdir d; syncdir d/; open h f wc; syncdir f; sync h; datasync h`,
}

func TestPosix(t *testing.T) {
	for name, text := range posixCases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
				if line = strings.TrimSpace(line); line != "" {
					lines = append(lines, line)
				}
			}
			standard, mem := newScript(newOS(t)), newScript(New())
			defer standard.close()
			if d := cmp.Diff(standard.run(lines...), mem.run(lines...)); d != "" {
				t.Errorf("-vfs.OS +crashfs\n%s", d)
			}
		})
	}
}

// TestPosixRandom runs random commands on few names, so that they meet.
func TestPosixRandom(t *testing.T) {
	base := newOS(t)
	defer base.Close()
	count := 0
	name := rapid.SampledFrom([]string{
		"a", "b", "c", "a/b", "a/c", "b/a", "b/a/c", "a/b/c", "a/b/c/d", "c/", "a/b/", ".", "a/.", "a/..", "a/../b", "b/./a", "..", "a/../..",
	})
	handle := rapid.SampledFrom([]string{"h", "k"})
	plain := rapid.SampledFrom([]string{"a", "b", "c"})
	num := rapid.SampledFrom([]string{"0", "1", "3", "7", "4095", "4096", "4099", "9000"})
	flag := rapid.SampledFrom([]string{"r", "w", "rw", "rwc", "wc", "rwct", "wt", "rwa", "rwca", "rwcx", "rc", "rt"})
	data := rapid.SampledFrom([]string{"x", "hello", strings.Repeat("z", 5000)})
	forms := [][]any{
		{"open", handle, name, flag}, {"open", handle, name, flag}, {"write", handle, data}, {"writeat", handle, num, data},
		{"read", handle, num}, {"readat", handle, num, num}, {"trunc", handle, num}, {"stat", handle}, {"mtime", handle, num},
		{"close", handle}, {"sync", handle}, {"mkdir", name}, {"mkdir", name}, {"rename", name, name}, {"rename", name, name},
		{"rename", name, name}, {"renamenew", plain, plain}, {"remove", name}, {"ls", name}, {"lstat", name},
		{"replace", name, data}, {"cat", name}, {"syncdir", name}, {"sub", handle, name},
	}
	command := rapid.Custom(func(t *rapid.T) string {
		form := rapid.SampledFrom(forms).Draw(t, "form")
		line := form[0].(string)
		for _, g := range form[1:] {
			line += " " + g.(*rapid.Generator[string]).Draw(t, "word")
		}
		if rapid.IntRange(0, 3).Draw(t, "where") == 0 {
			line = "@" + handle.Draw(t, "folder") + " " + line
		}
		return line
	})
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(command, 1, 60).Draw(rt, "commands")
		count++
		dir := "run" + strconv.Itoa(count)
		check(t, base.Mkdir(dir))
		top, err := base.Sub(dir)
		check(t, err)
		standard, mem := newScript(top), newScript(New())
		defer standard.close()
		if d := cmp.Diff(standard.run(lines...), mem.run(lines...)); d != "" {
			rt.Fatalf("-vfs.OS +crashfs\n%s", d)
		}
	})
}
