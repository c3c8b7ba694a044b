package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
)

// halve cuts a file in the middle, and returns what is left.
func halve(t *testing.T, path string) []byte {
	t.Helper()
	b := must[[]byte](t)(os.ReadFile(path))
	write(t, path, b[:len(b)/2])
	return b[:len(b)/2]
}

// unreferred makes a store with a context and a damaged blob that nothing refers to: what a power cut leaves of a message that was not
// acknowledged.
func unreferred(t *testing.T, opts ...Option) (p *patient, payload, left []byte, path string) {
	t.Helper()
	p = newPatient(t, true)
	payload = bytes.Repeat([]byte("nobody's "), 1000)
	sum, _, err := p.store.blobs.PutUnsynced(payload)
	check(t, err)
	path = filepath.Join(p.store.Path(), filepath.FromSlash(blob.Path(sum)))
	left = halve(t, path)
	p.store = must[*Store](t)(Open(p.store.Path(), opts...))
	t.Cleanup(func() { _ = p.store.Close() })
	return p, payload, left, path
}

// TestRepairUnreferred: a damaged blob that nothing refers to goes to the trash with a repair, and nothing is wrong any more.
func TestRepairUnreferred(t *testing.T) {
	p, payload, left, path := unreferred(t)
	found, _ := p.heal(CheckOptions{})
	if len(found) != 1 || found[0].Kind != integrity.KindBlob || found[0].Severity != SeverityWarning || !found[0].Repairable {
		t.Errorf("a check found %+v", found)
	}
	if after := p.check(true); len(after) > 0 {
		t.Errorf("after a repair a check found %+v", after)
	}
	copies := must[[]string](t)(filepath.Glob(filepath.Join(p.store.Path(), "trash", "*", filepath.Base(path))))
	if len(copies) != 1 || !bytes.Equal(must[[]byte](t)(os.ReadFile(copies[0])), left) {
		t.Errorf("in the trash are %v", copies)
	}
	if sum, created, err := p.store.blobs.Put(payload); err != nil || !created || p.store.blobs.Verify(sum) != nil {
		t.Errorf("putting it again: created %v, %v", created, err)
	}
}

func putOnly(s *Store, payload []byte) error {
	_, _, err := s.blobs.Put(payload)
	return err
}

// TestRepairFromTrash: of the copies in the trash the whole one counts, wherever it is listed.
func TestRepairFromTrash(t *testing.T) {
	for _, whole := range []int{0, 3, 7, -1} {
		p := newPatient(t, false)
		sum := filepath.Base(p.blobs[0])
		for i := range 8 {
			item := filepath.Join(p.store.Path(), "trash", testID(i).String())
			p.mkdir(item)
			write(t, filepath.Join(item, sum), must[[]byte](t)(os.ReadFile(p.blobs[0])))
			if i != whole {
				halve(t, filepath.Join(item, sum))
			}
		}
		halve(t, p.blobs[0])
		found, lost := p.heal(CheckOptions{})
		repairable := whole >= 0
		if len(found) == 0 || found[0].Repairable != repairable || found[0].Severity != SeverityError || (lost == 0) != repairable {
			t.Errorf("whole copy %d: %d messages lost, found %+v", whole, lost, found)
		}
	}
}

// TestDamagedBlobSeverity: what a journal or a pack has costs nothing, and is a warning.
func TestDamagedBlobSeverity(t *testing.T) {
	ctx := context.Background()
	for name, want := range map[string]Severity{"journal": SeverityWarning, "pack": SeverityWarning, "nothing": SeverityError} {
		for damage, do := range map[string]func(*patient){
			"blob-damaged": func(p *patient) { halve(t, p.blobs[0]); halve(t, p.blobs[1]) },
			"blob-missing": func(p *patient) { p.remove(p.blobs[0], p.blobs[1]) },
		} {
			p := newPatient(t, name == "journal")
			if name == "pack" {
				c := must[*Context](t)(p.store.Context(ctx, p.id))
				must[Archived](t)(c.Archive(ctx, ArchiveOptions{}))
				check(t, c.Close())
			}
			do(p)
			found, lost := p.heal(CheckOptions{})
			if name == "pack" && damage == "blob-missing" && len(found) == 0 {
				continue // as it should be: a collection would have taken them
			}
			for _, f := range found {
				if string(f.Kind) != damage || f.Severity != want || f.Repairable != (want == SeverityWarning) {
					t.Errorf("%s, %s has it: %+v", damage, name, f)
				}
			}
			if len(found) == 0 || (lost > 0) != (want == SeverityError) {
				t.Errorf("%s, %s has it: found %d, %d messages lost", damage, name, len(found), lost)
			}
		}
	}
}

// TestDamagedPrompt: a system prompt whose blob is damaged is taken from a journal that has the same text.
func TestDamagedPrompt(t *testing.T) {
	ctx := context.Background()
	s, dir := newStore(t, WithTextThreshold(100))
	prompt := []byte(`"` + strings.Repeat("Be kind. ", 30) + `"`)
	m := Metadata{}
	m.Branches = append(m.Branches, ctxfolder.Branch{SystemPrompt: prompt})
	c := must[*Context](t)(s.Create(ctx, m))
	defer c.Close()
	must[Appended](t)(c.Active().Append(ctx, Draft{Body: append(append([]byte(`{"role":"system","content":`), prompt...), '}')}))
	halve(t, blobFiles(t, dir)[0])
	got, err := c.SystemPrompt(ctx, MainBranch)
	if err != nil || !bytes.Equal(got, prompt) {
		t.Errorf("%.40s, %v", got, err)
	}
}
