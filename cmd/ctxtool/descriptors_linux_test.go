package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
)

// damageReport matches reports of damage.
var damageReport = regexp.MustCompile(`-(damaged|missing)\b|damaged:|is missing|cannot be used|would be moved`)

// TestFewDescriptors: with too few descriptors a verb says so, and how to get more. It reports no damage, and repair
// changes nothing.
func TestFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs each verb with each number of descriptors")
	}
	s := newSparseStore(t)
	whole := func() (texts string) {
		t.Helper()
		p := &inProcess{store: s.dir}
		for _, args := range [][]string{{"--json", "show", s.sealed}, {"--json", "show", s.archived}, {"check", "--read-data"}} {
			if code := p.run(t.Context(), "", args...); code != 0 {
				t.Fatalf("%v: %d, %s%s", args, code, p.stdout.String(), p.stderr.String())
			}
			texts += p.stdout.String()
		}
		return texts
	}
	trash := func() []string {
		items, err := filepath.Glob(filepath.Join(s.dir, "trash", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return items
	}
	want, before, refusals := whole(), trash(), 0
	for few := 9; few <= 30; few++ {
		for _, args := range [][]string{
			{"ls"}, {"show", s.sealed}, {"--json", "show", s.archived}, {"export", s.archived},
			{"check"}, {"check", "--read-data"}, {"repair"}, {"du"}, {"gc"},
			{"append", s.sealed, "--expect-position", "99", "x"}, {"files", s.archived},
			{"tree", s.sealed}, {"branch", "ls", s.archived}, {"meta", s.sealed},
		} {
			cmd := exec.Command("ctxtool-measured", args...)
			cmd.Env = append(os.Environ(), "CTXDIR_STORE="+s.dir, "CTXDIR_NO_GC=1", "MEASURED=", fmt.Sprintf("DESCRIPTORS=%d", few))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			told := string(out) + stderr.String()
			if strings.Contains(told, "too many open files") {
				refusals++
				if err == nil || !strings.Contains(told, "ulimit -n") {
					t.Errorf("%v with %d descriptors: %v, no advice: %s", args, few, err, told)
				}
			}
			if strings.Contains(told, "ctxtool repair") || damageReport.MatchString(told) {
				t.Errorf("%v with %d descriptors: %v: %s", args, few, err, told)
			}
		}
	}
	if refusals < 50 {
		t.Errorf("only %d verbs had too few descriptors", refusals)
	}
	if got := whole(); got != want {
		t.Errorf("something was changed: %s", got)
	}
	if now := trash(); !slices.Equal(now, before) {
		t.Errorf("moved to the trash: %v, before %v", now, before)
	}
}

// TestRefusalHints: when the system refuses an operation, the hint names the remedy, and never a repair.
func TestRefusalHints(t *testing.T) {
	for number, want := range map[syscall.Errno]string{
		syscall.EMFILE: "ulimit -n", syscall.ENFILE: "fs.file-max", syscall.ENOMEM: "memory", syscall.ENOSPC: "trash empty",
		syscall.EDQUOT: "quota", syscall.EROFS: "a writable file system",
		syscall.EACCES: "permissions", syscall.EPERM: "permissions", syscall.EIO: "the disk may be failing",
	} {
		reason := &fs.PathError{Op: "open", Path: "x", Err: number}
		for _, err := range []error{
			reason, &ctxdir.Error{Op: "read", Err: reason}, fmt.Errorf("%w: %w", ctxdir.ErrDamaged, reason),
		} {
			if got := hint(err); !strings.Contains(got, want) {
				t.Errorf("%v: %q", err, got)
			}
			if got := problemHint(ctxdir.Summary{}.ID, err); !strings.Contains(got, want) {
				t.Errorf("%v: the problem: %q", err, got)
			}
			l := incompleteCount{}
			l.add(&record.Loaded{Message: &ctxdir.Message{Unavailable: err}})
			if got := hint(l.err(ctxdir.Summary{}.ID)); !strings.Contains(got, want) {
				t.Errorf("%v: messages: %q", err, got)
			}
		}
	}
}
