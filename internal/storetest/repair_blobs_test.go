package storetest_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestRepairUnreferred: a damaged blob that nothing refers to goes to the trash with a repair, and nothing is wrong any
// more.
func TestRepairUnreferred(t *testing.T) {
	p, payload, left, path := kit.NewUnreferenced(t)
	found, _ := p.Heal(checking.Options{})
	if len(found) != 1 || found[0].Kind != integrity.KindBlob || found[0].Severity != integrity.SeverityWarning || !found[0].Repairable {
		t.Errorf("a check found %+v", found)
	}
	if after := p.Check(true); len(after) > 0 {
		t.Errorf("after a repair a check found %+v", after)
	}
	copies := kit.Must[[]string](t)(filepath.Glob(filepath.Join(p.Store.Path(), "trash", "*", filepath.Base(path))))
	if len(copies) != 1 || !bytes.Equal(kit.Must[[]byte](t)(os.ReadFile(copies[0])), left) {
		t.Errorf("in the trash are %v", copies)
	}
	if sum, created, err := p.Store.Blobs.Put(payload); err != nil || !created || p.Store.Blobs.Verify(sum) != nil {
		t.Errorf("putting it again: created %v, %v", created, err)
	}
}

// TestRepairFromTrash: of the copies in the trash the whole one counts, wherever it is listed.
func TestRepairFromTrash(t *testing.T) {
	for _, whole := range []int{0, 3, 7, -1} {
		p := kit.NewPatient(t, false)
		sum := filepath.Base(p.Blobs[0])
		for i := range 8 {
			item := filepath.Join(p.Store.Path(), "trash", kit.TestID(i).String())
			p.Mkdir(item)
			kit.Write(t, filepath.Join(item, sum), kit.Must[[]byte](t)(os.ReadFile(p.Blobs[0])))
			if i != whole {
				kit.Halve(t, filepath.Join(item, sum))
			}
		}
		kit.Halve(t, p.Blobs[0])
		found, lost := p.Heal(checking.Options{})
		repairable := whole >= 0
		if len(found) == 0 || found[0].Repairable != repairable || found[0].Severity != integrity.SeverityError || (lost == 0) != repairable {
			t.Errorf("whole copy %d: %d messages lost, found %+v", whole, lost, found)
		}
	}
}

// TestDamagedBlobSeverity: what a log has costs nothing. If the blob is damaged, that is a warning; if it is missing, nothing
// is wrong, since the seal of the log makes it.
func TestDamagedBlobSeverity(t *testing.T) {
	for _, log := range []bool{true, false} {
		for damage, do := range map[string]func(*kit.Patient){
			"blob-damaged": func(p *kit.Patient) { kit.Halve(t, p.Blobs[0]); kit.Halve(t, p.Blobs[1]) },
			"blob-missing": func(p *kit.Patient) { p.Remove(p.Blobs[0], p.Blobs[1]) },
		} {
			p := kit.NewPatient(t, log)
			do(p)
			want, severity := 2, integrity.SeverityError
			if log {
				severity = integrity.SeverityWarning
			}
			if log && damage == "blob-missing" {
				want = 0
			}
			found, lost := p.Heal(checking.Options{})
			for _, f := range found {
				if string(f.Kind) != damage || f.Severity != severity || f.Repairable != log {
					t.Errorf("%s, log %v: %+v", damage, log, f)
				}
			}
			if len(found) != want || (lost > 0) == log {
				t.Errorf("%s, log %v: found %d, %d messages lost", damage, log, len(found), lost)
			}
		}
	}
}

// TestDamagedPrompt: a system prompt whose blob is damaged is taken from a log that has the same text.
func TestDamagedPrompt(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithTextThreshold(100))
	prompt := []byte(`"` + strings.Repeat("Be kind. ", 30) + `"`)
	m := engine.Metadata{}
	m.Branches = append(m.Branches, ctxfolder.Branch{SystemPrompt: prompt})
	c := kit.Must[*engine.Context](t)(s.Create(ctx, m))
	defer c.Close()
	kit.Append(t, c.Active(), engine.Draft{Body: append(append([]byte(`{"role":"system","content":`), prompt...), '}')})
	kit.Halve(t, kit.BlobFiles(t, dir)[0])
	got, err := c.SystemPrompt(ctx, engine.MainBranch)
	if err != nil || !bytes.Equal(got, prompt) {
		t.Errorf("%.40s, %v", got, err)
	}
}
