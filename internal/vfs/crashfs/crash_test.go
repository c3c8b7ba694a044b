package crashfs

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// state is the tree with all content, as "a/f=content" words; an empty folder ends in a slash.
func state(t *testing.T, fsys vfs.FS) string {
	t.Helper()
	var words []string
	var walk func(dir string)
	walk = func(dir string) {
		n := 0
		for e, err := range fsys.ReadDir(dir) {
			check(t, err)
			n++
			p := path.Join(dir, e.Name())
			if e.IsDir() {
				walk(p)
				continue
			}
			b, err := vfs.ReadFile(fsys, p, 1<<20)
			check(t, err)
			words = append(words, p+"="+short(b))
		}
		if n == 0 && dir != "." {
			words = append(words, dir+"/")
		}
	}
	walk(".")
	slices.Sort(words)
	return strings.Join(words, " ")
}

// short writes runs of more than 8 equal bytes as "x*n" and zero bytes as dots.
func short(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); {
		j := i
		for j < len(b) && b[j] == b[i] {
			j++
		}
		c := string(b[i : i+1])
		if b[i] == 0 {
			c = "."
		}
		if j-i > 8 {
			fmt.Fprintf(&s, "%s*%d", c, j-i)
		} else {
			s.WriteString(strings.Repeat(c, j-i))
		}
		i = j
	}
	return s.String()
}

const seeds = 400

// outcomes is the set of states that crashes leave.
func outcomes(t *testing.T, f *FS) []string {
	t.Helper()
	set := []string{state(t, f.Crash(Lose)), state(t, f.Crash(Keep)), state(t, f.Crash(ZeroFill))}
	for seed := range uint64(seeds) {
		set = append(set, state(t, f.Crash(Random(seed))))
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// TestOutcomes lists every state that a few operations without sync may leave: what a crash may do and
// what it may not.
func TestOutcomes(t *testing.T) {
	big := strings.Repeat("n", 1024)
	for name, c := range map[string]struct {
		durable func(t *testing.T, f *FS) // followed by SyncAll
		then    func(t *testing.T, f *FS)
		want    []string
	}{
		"create": {
			then: func(t *testing.T, f *FS) { writeSynced(t, f, "f", "x") },
			want: []string{"", "f=x"},
		},
		"name synced and data not": {
			then: func(t *testing.T, f *FS) { write(t, f, "f", "x"); check(t, f.SyncDir(".")) },
			want: []string{"f=", "f=.", "f=x"},
		},
		"both synced": {
			then: func(t *testing.T, f *FS) { writeSynced(t, f, "f", "x"); check(t, f.SyncDir(".")) },
			want: []string{"f=x"},
		},
		"creates in any order": {
			then: func(t *testing.T, f *FS) { writeSynced(t, f, "a", "1"); writeSynced(t, f, "b", "2") },
			want: []string{"", "a=1", "a=1 b=2", "b=2"},
		},
		"remove": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Remove("f")) },
			want:    []string{"", "f=x"},
		},
		"remove and create anew": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Remove("f")); writeSynced(t, f, "f", "y") },
			want:    []string{"", "f=x", "f=y"},
		},
		"remove before an earlier create": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "x") },
			then:    func(t *testing.T, f *FS) { writeSynced(t, f, "g", "y"); check(t, f.Remove("f")) },
			want:    []string{"", "f=x", "f=x g=y", "g=y"},
		},
		"rename": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Rename("f", "g")) },
			want:    []string{"f=x", "g=x"},
		},
		"rename twice": {
			durable: func(t *testing.T, f *FS) { write(t, f, "a", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Rename("a", "b")); check(t, f.Rename("b", "c")) },
			want:    []string{"a=x", "b=x", "c=x"},
		},
		"rename of a new file": {
			then: func(t *testing.T, f *FS) { writeSynced(t, f, "tmp", "x"); check(t, f.Rename("tmp", "f")) },
			want: []string{"", "f=x", "tmp=x"},
		},
		"rename over a file": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "old") },
			then:    func(t *testing.T, f *FS) { writeSynced(t, f, "tmp", "new"); check(t, f.Rename("tmp", "f")) },
			want:    []string{"f=new", "f=old", "f=old tmp=new"},
		},
		"replace": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "old") },
			then:    func(t *testing.T, f *FS) { check(t, f.Replace("f", []byte("new"))); check(t, f.SyncDir(".")) },
			want:    []string{"f=new"},
		},
		"rename without fsync": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "old") },
			then: func(t *testing.T, f *FS) {
				write(t, f, "tmp", "new")
				check(t, f.Rename("tmp", "f"))
				check(t, f.SyncDir("."))
			},
			want: []string{"f=", "f=...", "f=new"},
		},
		"move": {
			durable: func(t *testing.T, f *FS) { check(t, f.Mkdir("d")); write(t, f, "f", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Rename("f", "d/f")) },
			want:    []string{"d/ f=x", "d/f=x", "d/f=x f=x"},
		},
		"move, source synced": {
			durable: func(t *testing.T, f *FS) { check(t, f.Mkdir("d")); write(t, f, "f", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Rename("f", "d/f")); check(t, f.SyncDir(".")) },
			want:    []string{"d/f=x"},
		},
		"move, target synced": {
			durable: func(t *testing.T, f *FS) { check(t, f.Mkdir("d")); write(t, f, "f", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Rename("f", "d/f")); check(t, f.SyncDir("d")) },
			want:    []string{"d/f=x", "d/f=x f=x"},
		},
		"move of a new file, source synced": {
			durable: func(t *testing.T, f *FS) { check(t, f.Mkdir("d")) },
			then: func(t *testing.T, f *FS) {
				writeSynced(t, f, "f", "x")
				check(t, f.Rename("f", "d/f"))
				check(t, f.SyncDir("."))
			},
			want: []string{"d/", "d/f=x"},
		},
		"move into a new folder, source synced": {
			durable: func(t *testing.T, f *FS) {
				write(t, f, "f", "x")
				check(t, f.Mkdir("s"))
				check(t, f.Rename("f", "s/f"))
			},
			then: func(t *testing.T, f *FS) {
				check(t, f.Mkdir("d"))
				check(t, f.Rename("s/f", "d/f"))
				check(t, f.SyncDir("s"))
			},
			want: []string{"d/f=x s/"},
		},
		"move of a folder": {
			durable: func(t *testing.T, f *FS) { check(t, f.Mkdir("d")); check(t, f.Mkdir("e")); write(t, f, "d/f", "x") },
			then:    func(t *testing.T, f *FS) { check(t, f.Rename("d", "e/d")) },
			want:    []string{"d/f=x e/", "e/d/f=x"},
		},
		"move of a folder into a new one, source synced": {
			durable: func(t *testing.T, f *FS) {
				check(t, f.Mkdir("d"))
				check(t, f.Mkdir("s"))
				check(t, f.Mkdir("s/x"))
				write(t, f, "s/x/f", "x")
			},
			then: func(t *testing.T, f *FS) {
				check(t, f.Mkdir("d/n"))
				check(t, f.Rename("s/x", "d/n/x"))
				check(t, f.SyncDir("s"))
			},
			want: []string{"d/n/x/f=x s/"},
		},
		"mkdir and below": {
			then: func(t *testing.T, f *FS) {
				check(t, f.Mkdir("d"))
				writeSynced(t, f, "d/f", "x")
				check(t, f.SyncDir("d"))
			},
			want: []string{"", "d/f=x"},
		},
		"mkdir synced and below not": {
			then: func(t *testing.T, f *FS) {
				check(t, f.Mkdir("d"))
				writeSynced(t, f, "d/f", "x")
				check(t, f.SyncDir("."))
			},
			want: []string{"d/", "d/f=x"},
		},
		"emptied folder removed": {
			durable: func(t *testing.T, f *FS) { check(t, f.Mkdir("d")); write(t, f, "d/f", "x") },
			then: func(t *testing.T, f *FS) {
				check(t, f.Rename("d/f", "f"))
				check(t, f.Remove("d"))
			},
			want: []string{"d/ f=x", "d/f=x", "d/f=x f=x", "f=x"},
		},
		"overwrite": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "abc") },
			then:    func(t *testing.T, f *FS) { write(t, f, "f", "xy") },
			want:    []string{"f=abc", "f=xyc"},
		},
		"appends within a sector": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "a") },
			then:    func(t *testing.T, f *FS) { appendTo(t, f, "f", "b"); appendTo(t, f, "f", "c") },
			want:    []string{"f=a", "f=a.", "f=a..", "f=ab", "f=ab.", "f=abc"},
		},
		"datasync": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "a") },
			then: func(t *testing.T, f *FS) {
				appendTo(t, f, "f", "b")
				h := open(t, f, "f")
				check(t, h.Datasync())
			},
			want: []string{"f=ab"},
		},
		"datasync before a write": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "a") },
			then: func(t *testing.T, f *FS) {
				appendTo(t, f, "f", "b")
				check(t, open(t, f, "f").Datasync())
				appendTo(t, f, "f", "c")
			},
			want: []string{"f=ab", "f=ab.", "f=abc"},
		},
		"sectors": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", strings.Repeat("o", 1024)) },
			then:    func(t *testing.T, f *FS) { write(t, f, "f", big) },
			want:    []string{"f=n*1024", "f=n*512o*512", "f=o*1024", "f=o*512n*512"},
		},
		"truncate": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "abcdef") },
			then:    func(t *testing.T, f *FS) { check(t, open(t, f, "f").Truncate(2)) },
			want:    []string{"f=ab", "f=abcdef"},
		},
		"truncate and write anew": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "abcdef") },
			then: func(t *testing.T, f *FS) {
				h := open(t, f, "f")
				check(t, h.Truncate(0))
				_, err := h.Write([]byte("xy"))
				check(t, err)
			},
			want: []string{"f=", "f=..", "f=abcdef", "f=xy"},
		},
		"failed syncdir": {
			then: func(t *testing.T, f *FS) {
				writeSynced(t, f, "f", "x")
				f.FailAt(len(f.Ops())+1, errIO)
				if err := f.SyncDir("."); err == nil {
					t.Error("SyncDir did not fail")
				}
			},
			want: []string{"", "f=x"},
		},
		"failed sync": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "a") },
			then: func(t *testing.T, f *FS) {
				appendTo(t, f, "f", "b")
				failSync(t, f, "f")
				check(t, open(t, f, "f").Sync()) // says yes, and lies
				if s := state(t, f); s != "f=ab" {
					t.Errorf("data of a failed sync cannot be read: %s", s)
				}
			},
			want: []string{"f=a", "f=a.", "f=ab"},
		},
		"failed sync, written on": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "a") },
			then: func(t *testing.T, f *FS) {
				appendTo(t, f, "f", "b")
				failSync(t, f, "f")
				appendTo(t, f, "f", "c")
				check(t, open(t, f, "f").Sync())
			},
			want: []string{"f=a.c", "f=abc"},
		},
		"failed sync, written again": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", "a") },
			then: func(t *testing.T, f *FS) {
				appendTo(t, f, "f", "b")
				failSync(t, f, "f")
				_, err := open(t, f, "f").WriteAt([]byte("b"), 1)
				check(t, err)
				check(t, open(t, f, "f").Sync())
			},
			want: []string{"f=ab"},
		},
		"failed sync of sectors": {
			durable: func(t *testing.T, f *FS) { write(t, f, "f", strings.Repeat("o", 1024)) },
			then:    func(t *testing.T, f *FS) { write(t, f, "f", big); failSync(t, f, "f") },
			want:    []string{"f=n*1024", "f=n*512o*512", "f=o*1024", "f=o*512n*512"},
		},
		"syncall below": {
			durable: func(t *testing.T, f *FS) { check(t, f.Mkdir("d")) },
			then: func(t *testing.T, f *FS) {
				check(t, f.Mkdir("d/e"))
				write(t, f, "d/e/f", "x")
				writeSynced(t, f, "g", "y")
				sub, err := f.Sub("d")
				check(t, err)
				check(t, sub.SyncAll())
			},
			want: []string{"d/e/f=x", "d/e/f=x g=y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := New()
			if c.durable != nil {
				c.durable(t, f)
				check(t, f.SyncAll())
			}
			c.then(t, f)
			if d := cmp.Diff(c.want, outcomes(t, f)); d != "" {
				t.Errorf("-want +got\n%s\n%s", d, f.Dump())
			}
			// A state is durable: a second power cut changes nothing.
			once := f.Crash(Random(1))
			if a, b := state(t, once), state(t, once.Crash(Lose)); a != b {
				t.Errorf("a second crash made %q of %q", b, a)
			}
		})
	}
}

func appendTo(t *testing.T, f *FS, name, data string) {
	t.Helper()
	h, err := f.OpenFile(name, os.O_WRONLY|os.O_APPEND)
	check(t, err)
	_, err = h.Write([]byte(data))
	check(t, err)
}

func open(t *testing.T, f *FS, name string) vfs.File {
	t.Helper()
	h, err := f.OpenFile(name, os.O_RDWR)
	check(t, err)
	return h
}
