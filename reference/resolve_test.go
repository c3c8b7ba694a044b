package reference

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// workspace is a folder with files for tests.
type workspace struct {
	t   *testing.T
	dir string
}

// newWorkspace makes a workspace with the file pkg/store.go of 40 lines. With git, it is committed.
func newWorkspace(t *testing.T, git bool) *workspace {
	t.Helper()
	w := &workspace{t, t.TempDir()}
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(w.dir))
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	w.write("pkg/store.go", numbered("store", 40))
	if git {
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("git is not installed")
		}
		w.git("init", "-q", "-b", "main")
		w.git("config", "user.email", "ada@example.org")
		w.git("config", "user.name", "Ada")
		w.git("config", "core.autocrlf", "false")
		w.commit("first")
	}
	return w
}

func numbered(name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s line %d\n", name, i+1)
	}
	return b.String()
}

func (w *workspace) write(file, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(file))
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path, []byte(text), 0o600))
}

func (w *workspace) read(file string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(file)))
	w.must(err)
	return string(b)
}

func (w *workspace) remove(file string) {
	w.t.Helper()
	w.must(os.Remove(filepath.Join(w.dir, filepath.FromSlash(file))))
}

func (w *workspace) rename(from, to string) {
	w.t.Helper()
	w.write(to, w.read(from))
	w.remove(from)
}

func (w *workspace) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *workspace) commit(subject string) string {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "--allow-empty", "-m", subject)
	return w.git("rev-parse", "HEAD")
}

func (w *workspace) ref(file string, a, b int64) Ref {
	w.t.Helper()
	r, err := New(context.Background(), w.dir, file, a, b)
	w.must(err)
	return r
}

// resolve resolves one reference.
func (w *workspace) resolve(r Ref) Resolution {
	w.t.Helper()
	all, err := Resolve(context.Background(), w.dir, []Ref{r})
	w.must(err)
	return all[0]
}

// brief is a resolution in a few words: "moved b.go:2-3".
func brief(r Resolution) string {
	at := Ref{File: r.File, Lines: r.Lines}
	return string(r.Status) + " " + at.String()
}

// statusCase is a change of a workspace, and what becomes of the lines 10-12 of pkg/store.go.
type statusCase struct {
	name   string
	change func(w *workspace)
	status Status
	file   string // "" for the same
	lines  Lines  // zero for the same
	text   string // "" for the same lines
	note   string // in the note
}

var statusCases = []statusCase{
	{name: "untouched", change: func(*workspace) {}, status: Found},
	{name: "edited below", change: func(w *workspace) {
		w.write("pkg/store.go", w.read("pkg/store.go")+"more\n")
	}, status: Found, note: "other lines"},
	{name: "edited above", change: func(w *workspace) {
		w.write("pkg/store.go", "new\nnew\n"+w.read("pkg/store.go"))
	}, status: Shifted, lines: Lines{12, 14}, note: "lines 10-12 are lines 12-14 now"},
	{name: "other ends of lines", change: func(w *workspace) {
		w.write("pkg/store.go", strings.ReplaceAll(w.read("pkg/store.go"), "\n", "\r\n"))
	}, status: Found, text: "store line 10\r\nstore line 11\r\nstore line 12\r\n"},
	{name: "edited inside", change: func(w *workspace) {
		w.write("pkg/store.go", strings.Replace(w.read("pkg/store.go"), "line 11\n", "line eleven\n", 1))
	}, status: Modified, text: "store line 10\nstore line eleven\nstore line 12\n", note: "the lines changed since; the hash was "},
	{name: "edited above and inside", change: func(w *workspace) {
		w.write("pkg/store.go", "new\n"+strings.Replace(w.read("pkg/store.go"), "line 11\n", "line eleven\nand more\n", 1))
	}, status: Modified, lines: Lines{11, 14}, text: "store line 10\nstore line eleven\nand more\nstore line 12\n"},
	{name: "shorter", change: func(w *workspace) {
		w.write("pkg/store.go", "one\ntwo\n")
	}, status: Modified, lines: Lines{2, 2}, text: "two\n", note: "only 2 lines"},
	{name: "empty", change: func(w *workspace) { w.write("pkg/store.go", "") }, status: Modified, text: "-", note: "only 0 lines"},
	{name: "removed", change: func(w *workspace) { w.remove("pkg/store.go") }, status: NotFound, note: "removed"},
	{name: "moved", change: func(w *workspace) { w.rename("pkg/store.go", "internal/disk.go") }, status: Moved, file: "internal/disk.go"},
	{name: "moved and edited above", change: func(w *workspace) {
		w.rename("pkg/store.go", "internal/store.go")
		w.write("internal/store.go", "new\n"+w.read("internal/store.go"))
	}, status: Moved, file: "internal/store.go", lines: Lines{11, 13}},
	{name: "a folder", change: func(w *workspace) {
		w.remove("pkg/store.go")
		w.write("pkg/store.go/x", "x")
	}, status: NotFound, note: "it is a folder now"},
}

func TestStatus(t *testing.T) {
	for _, tc := range statusCases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorkspace(t, true)
			r := w.ref("pkg/store.go", 10, 12)
			tc.change(w)
			tc.check(t, r, w.resolve(r))
			w.commit("second")
			tc.check(t, r, w.resolve(r))
		})
	}
}

func TestStatusWithoutGit(t *testing.T) {
	for _, tc := range statusCases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorkspace(t, false)
			r := w.ref("pkg/store.go", 10, 12)
			if r.Commit != "" || r.Blob == "" {
				t.Fatalf("a reference without a repository: %+v", r)
			}
			tc.change(w)
			if tc.name == "edited above and inside" {
				tc.lines, tc.text = Lines{11, 13}, "" // a guess
			}
			got := w.resolve(r)
			tc.note = ""
			tc.check(t, r, got)
			if got.gone && !strings.Contains(got.Note, "git") {
				t.Errorf("the note does not say that git is missing: %q", got.Note)
			}
		})
	}
}

func (tc *statusCase) check(t *testing.T, r Ref, got Resolution) {
	t.Helper()
	file, lines, text := tc.file, tc.lines, tc.text
	if file == "" {
		file = r.File
	}
	if lines.IsZero() && tc.name != "empty" {
		lines = r.Lines
	}
	if text == "" && tc.status != Modified && tc.status != NotFound {
		text = r.Context
	}
	if got.Status != tc.status || got.File != file || got.Lines != lines || !strings.Contains(got.Note, tc.note) {
		t.Errorf("%s %s:%s (%s), wanted %s %s:%s (%s)", got.Status, got.File, got.Lines, got.Note, tc.status, file, lines, tc.note)
	}
	if text != "" && got.Text != strings.TrimPrefix(text, "-") {
		t.Errorf("the lines are %q, wanted %q", got.Text, text)
	}
	if gone := got.Status == Modified || got.Status == NotFound; gone != (got.Fallback == r.Context) {
		t.Errorf("the lines as they were are %q", got.Fallback)
	}
	if got.Status == NotFound {
		if !got.LastSeen.Equal(r.Seen) || r.Commit != "" && got.LastCommit != r.Commit || got.Blob != "" || got.Text != "" {
			t.Errorf("last seen in %q at %v, blob %q, text %q", got.LastCommit, got.LastSeen, got.Blob, got.Text)
		}
	} else if len(got.Blob) != 40 {
		t.Errorf("the hash is %q", got.Blob)
	}
}

func TestRenameWithEdit(t *testing.T) {
	w := newWorkspace(t, true)
	inside, other := w.ref("pkg/store.go", 10, 12), w.ref("pkg/store.go", 30, 31)
	w.git("mv", "pkg/store.go", "disk.go")
	w.write("disk.go", "new\n"+strings.Replace(w.read("disk.go"), "line 11\n", "line eleven\n", 1))
	w.commit("second")
	got := w.resolve(inside)
	if brief(got) != "moved disk.go:11-13" || got.Text != "store line 10\nstore line eleven\nstore line 12\n" ||
		got.Fallback != inside.Context || !strings.Contains(got.Note, "changed") {
		t.Errorf("lines that changed: %+v", got)
	}
	got = w.resolve(other)
	if brief(got) != "moved disk.go:31-32" || got.Text != other.Context || got.Fallback != "" {
		t.Errorf("lines that did not change: %+v", got)
	}
}

func TestOtherBranch(t *testing.T) {
	w := newWorkspace(t, true)
	w.git("checkout", "-q", "-b", "feature")
	w.write("new.go", numbered("new", 9))
	commit := w.commit("new")
	r := w.ref("new.go", 2, 3)
	w.git("checkout", "-q", "main")
	got := w.resolve(r)
	if got.Status != NotFound || !strings.Contains(got.Note, "is not on the branch main") || got.LastCommit != commit ||
		got.Fallback != "new line 2\nnew line 3\n" {
		t.Errorf("on another branch: %+v", got)
	}
	w.git("checkout", "-q", "feature")
	if got = w.resolve(r); got.Status != Found {
		t.Errorf("back on the branch: %+v", got)
	}
	last := w.commit("another")
	w.remove("new.go")
	removed := w.commit("remove")
	got = w.resolve(r)
	if got.Status != NotFound || got.LastCommit != last || !strings.Contains(got.Note, removed[:12]+" removed the file on ") {
		t.Errorf("after the removal: %+v", got)
	}
}

func TestNoCommitYet(t *testing.T) {
	w := newWorkspace(t, false)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w.git("init", "-q", "-b", "main")
	r := w.ref("pkg/store.go", 10, 12)
	if r.Commit != "" || r.Blob == "" {
		t.Errorf("before the first commit: %+v", r)
	}
	w.rename("pkg/store.go", "disk.go")
	if got := w.resolve(r); brief(got) != "moved disk.go:10-12" {
		t.Errorf("moved: %+v", got)
	}
	w.remove("disk.go")
	if got := w.resolve(r); got.Status != NotFound || got.Fallback != r.Context || got.Note != "no file here has these lines" {
		t.Errorf("removed: %+v", got)
	}
}

// TestHashOfGit checks that hashes are those of git, also in a repository with SHA-256.
func TestHashOfGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		w := newWorkspace(t, false)
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("git is not installed")
		}
		w.git("init", "-q", "-b", "main", "--object-format="+format)
		w.git("config", "user.email", "ada@example.org")
		w.git("config", "user.name", "Ada")
		commit := w.commit("first")
		r := w.ref("pkg/store.go", 10, 12)
		if r.Blob != w.git("hash-object", "pkg/store.go") || r.Commit != commit {
			t.Errorf("%s: %+v", format, r)
		}
		w.git("mv", "pkg/store.go", "disk.go")
		if got := w.resolve(r); brief(got) != "moved disk.go:10-12" || got.Blob != r.Blob {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

func TestDirtyTree(t *testing.T) {
	w := newWorkspace(t, true)
	w.write("pkg/store.go", strings.Replace(w.read("pkg/store.go"), "line 11\n", "not committed\n", 1))
	r := w.ref("pkg/store.go", 10, 12)
	if r.Commit != w.git("rev-parse", "HEAD") || r.Blob != w.git("hash-object", "pkg/store.go") {
		t.Errorf("commit %s, blob %s", r.Commit, r.Blob)
	}
	if !strings.Contains(r.Diff, "-store line 11\n+store not committed\n") || !strings.HasPrefix(r.Diff, "@@ -") {
		t.Errorf("the diff is %q", r.Diff)
	}
	w.git("checkout", "-q", "pkg/store.go")
	got := w.resolve(r)
	if got.Status != Modified || got.Text != "store line 10\nstore line 11\nstore line 12\n" ||
		!strings.Contains(got.Fallback, "not committed") {
		t.Errorf("after the change was lost: %+v", got)
	}
}

func TestShallowClone(t *testing.T) {
	w := newWorkspace(t, true)
	r := w.ref("pkg/store.go", 10, 12)
	w.write("gone.go", numbered("gone", 5))
	w.commit("second")
	gone := w.ref("gone.go", 1, 2)
	w.git("rm", "-q", "gone.go")
	w.write("pkg/store.go", strings.Replace(w.read("pkg/store.go"), "line 11\n", "line eleven\n", 1))
	w.commit("third")
	clone := &workspace{t, filepath.Join(t.TempDir(), "clone")}
	w.git("clone", "-q", "--depth=1", "file://"+filepath.ToSlash(w.dir), clone.dir)
	got := clone.resolve(r)
	if got.Status != Modified || got.Fallback != r.Context || !strings.Contains(got.Note, "shallow clone") || got.Lines != r.Lines {
		t.Errorf("an edited file: %+v", got)
	}
	if got = clone.resolve(gone); got.Status != NotFound || !strings.Contains(got.Note, "shallow clone") || got.LastCommit != gone.Commit {
		t.Errorf("a removed file: %+v", got)
	}
}

// TestPartialClone checks that nothing is fetched for a file that a partial clone lacks.
func TestPartialClone(t *testing.T) {
	w := newWorkspace(t, true)
	w.git("config", "uploadpack.allowFilter", "true")
	lacking := w.ref("pkg/store.go", 10, 12)
	w.write("zz.go", numbered("other", 20))
	w.write("pkg/store.go", strings.Replace(w.read("pkg/store.go"), "line 11\n", "line eleven\n", 1))
	w.commit("second")
	known := w.ref("zz.go", 10, 12)
	clone := &workspace{t, filepath.Join(t.TempDir(), "clone")}
	w.git("clone", "-q", "--filter=blob:none", "file://"+filepath.ToSlash(w.dir), clone.dir)
	clone.write("zz.go", strings.Replace(clone.read("zz.go"), "line 11\n", "line eleven\n", 1))
	missing := clone.git("rev-list", "--objects", "--all", "--missing=print")
	if !strings.Contains(missing, "?"+lacking.Blob) {
		t.Skip("git makes no partial clones")
	}
	all, err := Resolve(context.Background(), clone.dir, []Ref{known, lacking, known})
	w.must(err)
	for i, want := range []string{"modified zz.go:10-12", "modified pkg/store.go:10-12", "modified zz.go:10-12"} {
		if brief(all[i]) != want || (i == 1) != strings.Contains(all[i].Note, "git does not have the file as it was") {
			t.Errorf("%d: %+v", i, all[i])
		}
	}
	if now := clone.git("rev-list", "--objects", "--all", "--missing=print"); now != missing {
		t.Errorf("git fetched: %s", now)
	}
}

func TestWorkspaceBelowTheTop(t *testing.T) {
	w := newWorkspace(t, true)
	below := &workspace{t, filepath.Join(w.dir, "pkg")}
	r := below.ref("store.go", 10, 12)
	if r.File != "store.go" || r.Commit == "" {
		t.Fatalf("the reference is %+v", r)
	}
	w.git("mv", "pkg/store.go", "pkg/disk.go")
	w.write("pkg/disk.go", "new\n"+w.read("pkg/disk.go"))
	w.commit("second")
	if got := below.resolve(r); brief(got) != "moved disk.go:11-13" {
		t.Errorf("renamed below the root: %+v", got)
	}
	w.git("mv", "pkg/disk.go", "disk.go")
	w.write("pkg/x.go", "x\n")
	w.commit("third")
	if got := below.resolve(r); got.Status != NotFound || got.Fallback != r.Context || !strings.Contains(got.Note, "removed the file on") {
		t.Errorf("moved out of the root: %+v", got)
	}
}

// TestFewCalls checks that git is asked once for many references, and not at all if the files tell enough.
func TestFewCalls(t *testing.T) {
	w := newWorkspace(t, true)
	var refs []Ref
	for i := range 30 {
		file := fmt.Sprintf("pkg/f%d.go", i)
		w.write(file, numbered(file, 20))
	}
	w.commit("files")
	for i := range 30 {
		refs = append(refs, w.ref(fmt.Sprintf("pkg/f%d.go", i), 5, 6))
	}
	calls := w.countCalls()
	all, err := Resolve(context.Background(), w.dir, refs)
	w.must(err)
	for i := range all {
		if all[i].Status != Found {
			t.Fatalf("%+v", all[i])
		}
	}
	if n := calls(); n != 0 {
		t.Errorf("%d calls of git for files that are unchanged", n)
	}
	for i := range 30 {
		w.rename(fmt.Sprintf("pkg/f%d.go", i), fmt.Sprintf("pkg/g%d.go", i))
		w.write(fmt.Sprintf("pkg/g%d.go", i), "new\n"+w.read(fmt.Sprintf("pkg/g%d.go", i)))
	}
	w.commit("rename")
	calls()
	all, err = Resolve(context.Background(), w.dir, refs)
	w.must(err)
	for i := range all {
		if brief(all[i]) != fmt.Sprintf("moved pkg/g%d.go:6-7", i) {
			t.Fatalf("%+v", all[i])
		}
	}
	if n := calls(); n == 0 || n > 6 {
		t.Errorf("%d calls of git for %d renamed files", n, len(refs))
	}
}

// countCalls puts a git before the real one that counts its calls. The returned function says how many there were since.
func (w *workspace) countCalls() func() int {
	if runtime.GOOS == "windows" {
		w.t.Skip("a shell script stands for git")
	}
	real, err := exec.LookPath("git")
	w.must(err)
	dir := w.t.TempDir()
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\necho call >>%s\nexec %s \"$@\"\n", log, real)
	w.must(os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700))
	w.t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		b, _ := os.ReadFile(log)
		_ = os.Remove(log)
		return strings.Count(string(b), "call")
	}
}

func TestWithoutTheProgram(t *testing.T) {
	w := newWorkspace(t, true)
	r := w.ref("pkg/store.go", 10, 12)
	w.remove("pkg/store.go")
	t.Setenv("PATH", t.TempDir())
	if got := w.resolve(r); got.Status != NotFound || !strings.Contains(got.Note, "git is not installed") || got.LastCommit != r.Commit {
		t.Errorf("without git: %+v", got)
	}
	w.write("new.go", numbered("new", 3))
	if got := w.ref("new.go", 1, 2); got.Commit != "" || got.Sum == "" || w.resolve(got).Status != Found {
		t.Errorf("a reference made without git: %+v", got)
	}
}

// TestSlowGit checks that a git that does not answer costs no more than its time, and no resolution.
func TestSlowGit(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands for git")
	}
	w := newWorkspace(t, false)
	r, moved := w.ref("pkg/store.go", 10, 12), w.ref("pkg/store.go", 1, 2)
	w.rename("pkg/store.go", "store.go")
	dir := t.TempDir()
	w.must(os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	g := &git{ctx: ctx, dir: w.dir}
	if _, err := g.run(nil, "rev-parse"); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("a slow git: %v", err)
	}
	canceled, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Resolve(canceled, w.dir, []Ref{r, moved}); err != context.Canceled {
		t.Errorf("a canceled resolution: %v", err)
	}
}

// TestOutside checks that no reference and no link leads out of the workspace, and that no special file blocks.
func TestOutside(t *testing.T) {
	w := newWorkspace(t, true)
	secret := filepath.Join(t.TempDir(), "secret")
	w.must(os.WriteFile(secret, []byte(numbered("secret", 40)), 0o600))
	if runtime.GOOS != "windows" {
		w.must(os.Symlink(secret, filepath.Join(w.dir, "link")))
		w.must(os.Symlink(filepath.Dir(secret), filepath.Join(w.dir, "folder")))
		w.must(makePipe(filepath.Join(w.dir, "pipe")))
		w.must(os.Symlink("pkg/store.go", filepath.Join(w.dir, "inside")))
		if got := w.resolve(w.ref("inside", 10, 12)); got.Status != Found {
			t.Errorf("a link inside: %+v", got)
		}
	}
	big, err := os.Create(filepath.Join(w.dir, "big"))
	w.must(err)
	w.must(big.Truncate(maxContent + 1))
	w.must(big.Close())
	hash := strings.Repeat("0", 40)
	tree, err := openTree(w.dir)
	w.must(err)
	defer tree.close()
	for _, file := range []string{
		"link", "folder/secret", "pipe", "big", "../" + filepath.Base(w.dir) + "/pkg/store.go", "/etc/passwd", secret,
		"pkg/../../x", "pkg//store.go",
		"pkg/store.go/", "", ".", "./pkg/store.go", "pkg/store.go\x00", "pkg\nstore.go", "-rf", "--output=x", ":(top)pkg/store.go",
		`..\x`, `C:\x`,
		"pkg/store.go/deeper", strings.Repeat("x/", 3000) + "x", "HEAD:pkg/store.go", "*",
	} {
		for _, l := range []Lines{{}, {1, 2}, {1, 1 << 62}, {1 << 62, 1<<63 - 1}} {
			r := Ref{File: file, Lines: l, Sum: Sum(numbered("secret", 2)), Blob: hash, Commit: hash, Context: "x"}
			got := w.resolve(r)
			if got.Status != NotFound || got.Text != "" || got.Note == "" || strings.Contains(got.Fallback, "secret") {
				t.Errorf("%.50q %v: %+v", file, l, got)
			}
		}
		if c, err := tree.read(file); err == nil {
			t.Errorf("read %.50q: %.50q", file, c.text)
		}
		r, err := New(context.Background(), w.dir, file, 1, 1)
		if err == nil && path.Clean(file) != "pkg/store.go" { // New cleans a path
			t.Errorf("New accepts %.50q: %+v", file, r)
		}
	}
	for _, r := range []Ref{
		{File: "pkg/store.go", Commit: "--output=x"}, {File: "pkg/store.go", Blob: "HEAD"}, {File: "pkg/store.go", Lines: Lines{-1, 5}},
		{File: "pkg/store.go", Lines: Lines{5, 4}}, {File: "pkg/store.go", Sum: "xyz"},
		{File: "pkg/store.go", Commit: strings.ToUpper("abcdef0123")},
		{File: "pkg/store.go", Size: -1},
	} {
		if got := w.resolve(r); got.Status != NotFound || !strings.Contains(got.Note, "invalid") || r.Validate() == nil {
			t.Errorf("%+v: %+v", r, got)
		}
	}
	for _, l := range []Lines{{1, 1 << 62}, {1 << 62, 1<<63 - 1}} {
		r := w.ref("pkg/store.go", 10, 12)
		r.Lines = l
		if got := w.resolve(r); got.Status != Modified || got.Lines.To > 40 {
			t.Errorf("lines %v: %+v", l, got)
		}
	}
}

// TestGitRunsNothing checks that the settings of a repository make git run no program.
func TestGitRunsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands for a program")
	}
	w := newWorkspace(t, true)
	r := w.ref("pkg/store.go", 10, 12)
	trace := filepath.Join(t.TempDir(), "trace")
	program := filepath.Join(t.TempDir(), "program")
	w.must(os.WriteFile(program, []byte("#!/bin/sh\necho \"$0\" >>"+trace+"\ncat\n"), 0o700))
	w.write(".gitattributes", "*.go diff=own filter=own\n")
	w.write("other.go", "x\n")
	w.commit("second")
	for _, key := range []string{
		"core.fsmonitor", "diff.external", "diff.own.textconv", "diff.own.command", "filter.own.clean", "filter.own.smudge", "core.pager",
		"core.sshCommand",
	} {
		w.git("config", key, program)
	}
	w.write("other.go", "y\n")
	w.rename("pkg/store.go", "disk.go")
	w.write("disk.go", w.read("disk.go")+"more\n")
	if got := w.resolve(r); got.Status != NotFound && got.Status != Moved {
		t.Errorf("%+v", got)
	}
	w.ref("other.go", 1, 1)
	if b, err := os.ReadFile(trace); err == nil {
		t.Errorf("git ran programs: %s", b)
	}
}

func TestReferencesWithLittle(t *testing.T) {
	w := newWorkspace(t, true)
	commit := w.git("rev-parse", "HEAD")
	w.write("pkg/store.go", "new\n"+w.read("pkg/store.go"))
	r := Ref{File: "pkg/store.go", Lines: Lines{10, 12}, Commit: commit}
	if got := w.resolve(r); brief(got) != "shifted pkg/store.go:11-13" {
		t.Errorf("with a commit alone: %+v", got)
	}
	r.Commit = ""
	if got := w.resolve(r); got.Status != Found || !strings.Contains(got.Note, "nothing to compare") {
		t.Errorf("with a path alone: %+v", got)
	}
	if got := w.resolve(Ref{File: "pkg/store.go"}); got.Status != Found || got.Text != w.read("pkg/store.go") {
		t.Errorf("a whole file: %+v", got)
	}
	whole := w.ref("pkg/store.go", 0, 0)
	w.write("pkg/store.go", w.read("pkg/store.go")+"more\n")
	got := w.resolve(whole)
	if got.Status != Modified || got.Text != w.read("pkg/store.go") || !strings.Contains(got.Note, "the file changed since") {
		t.Errorf("a whole file that changed: %+v", got)
	}
	if _, err := Resolve(context.Background(), filepath.Join(w.dir, "none"), nil); err == nil {
		t.Error("a root that does not exist is no error")
	}
}
