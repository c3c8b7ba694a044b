package index

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// TestModel makes random commits, rotations and seals. The writer, a reader that follows and one that begins anew show
// what the model has.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, seed)
			reader := b.again(b.disk)
			defer reader.Close()
			for i := range 150 {
				must(t, b.commit())
				switch b.r.IntN(12) {
				case 0, 5:
					must(t, b.ix.Prepare())
					must(t, b.ix.Rotate())
				case 1, 6:
					must(t, sealAll(b.ix))
				case 2:
					must(t, sealAll(reader))
				case 4:
					must(t, b.ix.Merge(archive.Options{With: archive.NewCompressor(archive.Fast, 1)}))
				case 3:
					other := b.again(b.disk)
					b.compare(other, fmt.Sprint("anew ", i))
					b.ix.Close()
					b.ix = other // it writes from now on
				}
				b.compare(b.ix, fmt.Sprint("writer ", i))
				if b.r.IntN(3) == 0 {
					must(t, reader.Refresh())
					b.compare(reader, fmt.Sprint("reader ", i))
				}
			}
		})
	}
}

// contents returns what all files of a folder have.
func contents(t *testing.T, dir vfs.FS, folder string) string {
	var all strings.Builder
	for e, err := range dir.ReadDir(folder) {
		must(t, err)
		name := path.Join(folder, e.Name())
		if e.IsDir() {
			all.WriteString(contents(t, dir, name))
			continue
		}
		f, err := dir.OpenFile(name, os.O_RDONLY)
		must(t, err)
		size, err := vfs.Size(f)
		must(t, err)
		b, err := vfs.ReadData(f, 0, size)
		must(t, err)
		must(t, f.Close())
		fmt.Fprintf(&all, "== %s\n%s\n", name, b)
	}
	return all.String()
}

// TestErase: no file has an erased message after a seal, or one that was cut off its line, whether a log or a segment had
// it, and however often that was merged.
func TestErase(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		b := newBench(t, seed)
		var secrets []string
		for range 60 {
			before := b.model
			must(t, b.commit())
			for line, all := range b.model.lines {
				for i := range all {
					if all[i].envelope == "" && i < len(before.lines[line]) && before.lines[line][i].envelope != "" {
						secrets = append(secrets, before.lines[line][i].envelope)
					}
				}
				if was := before.lines[line]; len(was) > len(all) { // the line was cut
					for _, m := range was[len(all):] {
						if m.envelope != "" {
							secrets = append(secrets, m.envelope)
						}
					}
				}
			}
			switch b.r.IntN(6) {
			case 0:
				must(t, b.ix.Prepare())
				must(t, b.ix.Rotate())
			case 1:
				must(t, sealAll(b.ix))
			case 2:
				must(t, b.ix.Merge(archive.Options{}))
			}
		}
		must(t, b.ix.Prepare())
		must(t, b.ix.Rotate())
		must(t, sealAll(b.ix))
		must(t, b.ix.Merge(archive.Options{}))
		b.compare(b.ix, fmt.Sprint("seed ", seed))
		all := contents(t, b.disk, ".")
		for _, secret := range secrets {
			if i := strings.Index(secret, `"content":`); strings.Contains(all, secret[i:min(i+40, len(secret))]) {
				at := strings.Index(all, secret[i:min(i+40, len(secret))])
				file := all[strings.LastIndex(all[:at], "== "):at]
				t.Fatalf("seed %d: %s has %q\n%s", seed, file[:strings.IndexByte(file, '\n')], secret, b.disk.Dump())
			}
		}
		if len(secrets) == 0 && seed == 0 {
			t.Fatal("nothing was erased")
		}
	}
}

// sealAll seals all that the logs have.
func sealAll(ix *Index) error {
	if err := ix.Rotate(); err != nil {
		return err
	}
	return ix.Seal(archive.Options{})
}

// TestReloadBeforeSeal: what was known to be durable still is after the history was read anew.
func TestReloadBeforeSeal(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	must(t, b.commit())
	must(t, b.ix.Rotate())
	must(t, b.ix.Reload())
	must(t, b.ix.Seal(archive.Options{}))
	if n := len(b.ix.state.logs); n != 1 {
		t.Errorf("%d logs are left", n)
	}
	must(t, b.ix.Rotate())
	must(t, b.ix.Reload())
	must(t, b.commit())
	b.compare(b.ix, "in the end")
}

// TestDoubtedNext: a log whose blocks may not keep what is written to them is made anew before it begins.
func TestDoubtedNext(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	must(t, b.commit())
	must(t, b.ix.Prepare())
	must(t, b.ix.rotate())
	must(t, vfs.WriteNew(b.disk, "."+b.ix.state.newest().Next()+".1.suspect", nil))
	ix := b.again(b.disk)
	must(t, ix.Rotate())
	if all, err := journal.Suspects(b.disk, ix.state.newest().Name()); len(all) > 0 || err != nil {
		t.Errorf("%v are left, %v", all, err)
	}
	b.compare(ix, "in the end")
	ix.Close()
}
