package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// sparseStore is a store with a file of every kind.
type sparseStore struct {
	dir              string
	sealed, archived string // contexts
	message          string // an id
}

func newSparseStore(t *testing.T) *sparseStore {
	t.Helper()
	s := &sparseStore{dir: filepath.Join(t.TempDir(), "store")}
	p := &inProcess{store: s.dir}
	do := func(stdin string, args ...string) string {
		t.Helper()
		if code := p.run(t.Context(), stdin, args...); code != 0 {
			t.Fatal(args, p.stderr.String())
		}
		return strings.TrimSpace(p.stdout.String())
	}
	for _, id := range []*string{&s.sealed, &s.archived} {
		*id = do("", "new", "-q")
		lines := ""
		for i := range 9 {
			lines += fmt.Sprintf(`{"role":"user","content":"%d","long":"%s"}`+"\n", i, strings.Repeat("text ", 20_000*(i%2)))
		}
		do(lines, "append", *id, "--jsonl")
		do("", "branch", "fork", *id, "fork", "--at", "3")
		do(`{"n":1}`+"\n", "append", *id, "--branch", "fork", "--jsonl")
		do("", "branch", "rewind", *id, "--branch", "fork", "--to", "3")
		st, err := ctxdir.Open(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		c, err := st.Open(t.Context(), uuid.MustParse(*id))
		if err == nil {
			err = c.Admin().Seal(t.Context())
		}
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	do("", "gc")
	stray := filepath.Join(s.dir, s.sealed, "messages", "branch-main", "0a0a0a0a-0000-4000-8000-000000000000.json")
	if err := os.WriteFile(stray, []byte("no message"), 0o600); err != nil {
		t.Fatal(err)
	}
	do("", "repair", s.sealed)
	do("", "rm", do("", "new", "-q"))
	do("", "archive", s.archived, "--all")
	s.message = strings.Split(do("", "--json", "show", s.sealed, "--range", "4:5"), `"id":"`)[1][:36]
	do(`{"n":2}`+"\n", "append", s.sealed, "--jsonl")
	do("", "ls")
	for name, text := range map[string]string{
		"import.jsonl": `{"role":"user","content":"a"}` + "\n",
		"0a0a0a0a-0000-4000-8000-000000000000.json": `{"id":"0a0a0a0a-0000-4000-8000-000000000000","message_pool":{},"branches":{}}`,
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(s.dir), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestSparse: if any file is replaced by a sparse file of a terabyte, a verb neither reads for ever nor uses much
// memory.
func TestSparse(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs each verb on each kind of file")
	}
	const size = 1 << 40
	s := newSparseStore(t)
	kinds := []string{
		"store/SEALED/metadata.json",
		"store/SEALED/index.json",
		"store/SEALED/log-*.jsonl",
		"store/SEALED/segments/*.zst",
		"store/SEALED/messages/branch-main/*.json",
		"store/ARCHIVED/segments/*.zst",
		"store/blobs/*/*/*.zst",
		"store/SEALED/trash/*/item.json",
		"store/trash/*/item.json",
		"store/SEALED/erasing.json",
		"store/ctxdir.json",
		"store/collected.jsonl",
		"import.jsonl",
		"0a0a*.json",
	}
	verbs := [][]string{
		{
			"ls",
		},
		{"show", "SEALED"},
		{"--json", "show", "SEALED", "--branch", "fork"},
		{"--json", "show", "ARCHIVED"},
		{"export", "SEALED"},
		{"branch", "ls", "SEALED"},
		{"tree", "SEALED"},
		{"meta", "SEALED"},
		{
			"du",
		},
		{"du", "SEALED"},
		{"files", "SEALED", "ARCHIVED"},
		{"watch", "SEALED", "--tail", "3", "--no-follow"},
		{"watch", "SEALED", "--from", "0", "--no-follow"},
		{"check"},
		{"check", "--read-data"},
		{
			"repair",
		},
		{"repair", "--adopt"},
		{"gc"},
		{"trash", "ls"},
		{"trash", "empty"},
		{"backup", "SEALED", "ARCHIVED", "--to", "BASE/backup"},
		{"restore", "--from", "BASE/store", "SEALED"},
		{"archive", "SEALED", "--all"},
		{"unarchive", "ARCHIVED"},
		{
			"erase",
			"SEALED",
			"MESSAGE",
		},
		{"append", "SEALED", "text"},
		{"append", "ARCHIVED", "text"},
		{"externalise", "--threshold", "0"},
		{"rollback", "SEALED", "--to", "BASE/legacy.json"},
		{"rm", "SEALED"},
		{"import", "--format", "jsonl", "BASE/import.jsonl"},
		{"import", "BASE/import.jsonl"},
		{"migrate", "BASE"},
		{"doctor"},
	}
	common := []string{"ls", "show", "check", "repair", "gc", "append", "backup"} // that are tried on each form of a file
	for _, kind := range kinds {
		for _, how := range []string{"extended", "stretched", "hollow"} {
			t.Run(strings.ReplaceAll(kind, "/", " ")+" "+how, func(t *testing.T) {
				for _, verb := range verbs {
					outside := slices.Contains([]string{"import", "migrate"}, verb[0])
					if outside == strings.HasPrefix(kind, "store/") || how != "stretched" && !outside && !slices.Contains(common, verb[0]) {
						continue
					}
					base := t.TempDir()
					fill := strings.NewReplacer("SEALED", s.sealed, "ARCHIVED", s.archived, "MESSAGE", s.message, "BASE", base)
					if err := os.CopyFS(base, os.DirFS(filepath.Dir(s.dir))); err != nil {
						t.Fatal(err)
					}
					pattern := filepath.Join(base, fill.Replace(kind))
					files, _ := filepath.Glob(pattern)
					if !strings.Contains(kind, "*") {
						files = []string{pattern}
					}
					if len(files) == 0 {
						t.Fatalf("no %s", kind)
					}
					for _, f := range files {
						if how == "hollow" || strings.HasSuffix(kind, "erasing.json") {
							if err := os.WriteFile(f, nil, 0o600); err != nil {
								t.Fatal(err)
							}
						}
						if err := os.Truncate(f, size); err != nil {
							t.Skipf("no files of a terabyte here: %v", err)
						}
						if how == "stretched" {
							repeatAtEnd(t, f, size)
						}
					}
					args := make([]string, len(verb))
					for i := range verb {
						args[i] = fill.Replace(verb[i])
					}
					m := measure(t, filepath.Join(base, "store"), args...)
					if m.peak > 128*mib || m.read > 256*mib || m.killed {
						t.Errorf("%v: %d MiB of memory, %d MiB read, killed: %v", verb, m.peak/mib, m.read/mib, m.killed)
					}
					if used := onDisk(t, base); used > 32*mib {
						t.Errorf("%v: it takes %d MiB on the disk", verb, used/mib)
					}
				}
			})
		}
	}
}

// repeatAtEnd writes the beginning of a file once more at its end.
func repeatAtEnd(t *testing.T, name string, size int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	n, err := f.ReadAt(b, 0)
	if err == nil {
		b = bytes.TrimRight(b[:n], "\x00")
		_, err = f.WriteAt(b, size-int64(len(b)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// onDisk is how many bytes of the disk a folder takes.
func onDisk(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && unix.Lstat(path, &st) == nil {
			n += st.Blocks * 512
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
