package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/backup"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestStoredAgain: a message whose file is missing without a trace, and that is appended again before anybody noticed,
// is shown once with its content, at the end. The old position has no file then: it is missing, not edited; a repair
// marks it once, and what is changed at the one place is not at the other.
func TestStoredAgain(t *testing.T) {
	ctx := context.Background()
	for _, marked := range []bool{false, true} {
		t.Run(fmt.Sprint("replaced when marked: ", marked), func(t *testing.T) {
			p := kit.NewPatient(t, false)
			id, draft := p.Want["main"][30].ID, engine.Draft{ID: p.Want["main"][30].ID, Body: json.RawMessage(p.Want["main"][30].Text)}
			p.Remove(p.Main[30])
			p.In(func(c *engine.Context) {
				kit.Append(t, c.Active(), draft)
				if err := c.Fold(ctx); err != nil {
					t.Fatal(err)
				}
				if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
					t.Fatal(err)
				}
			})
			show := func(when, text string) {
				t.Helper()
				p.In(func(c *engine.Context) {
					ms := kit.Load(t, c.Active())
					if len(ms) != 41 || ms[30].Unavailable == nil || ms[40].Unavailable != nil || ms[40].Edited || kit.BodyOf(ms[40]) != text {
						t.Errorf("%s: %d messages, %+v, %+v", when, len(ms), ms[30], ms[len(ms)-1])
					}
					if m, err := c.Active().Message(ctx, id); err != nil || m.Position != 40 || kit.BodyOf(m) != text {
						t.Errorf("%s: found %+v, %v", when, m, err)
					}
				})
			}
			show("stored again", string(draft.Body))
			found := p.Check(true)
			if len(found) != 1 || found[0].Kind != integrity.KindMissing || !strings.Contains(found[0].Detail, "stored again at position 40") {
				t.Errorf("a check tells of %+v", found)
			}
			if marked {
				p.Settle("stored again")
				show("repaired", string(draft.Body))
			}
			p.In(func(c *engine.Context) {
				if err := c.Active().Replace(ctx, id, engine.Draft{Body: []byte(`{"new":1}`)}); err != nil {
					t.Error(err)
				}
				if at, err := c.Active().Append(ctx, engine.Draft{ID: id, Body: []byte(`{"new":1}`)}); err != nil || !at.Existed || at.Position != 40 {
					t.Errorf("a retry: %+v, %v", at, err)
				}
			})
			show("replaced", `{"new":1}`)
			p.Settle("replaced")
			show("replaced and repaired", `{"new":1}`)
			if found := p.Check(true); len(found) != 1 || found[0].Kind != integrity.KindLost || !strings.Contains(found[0].Detail, "stored again") {
				t.Errorf("a check tells of %+v", found)
			}
			other, _ := kit.NewStore(t)
			copied, err := backup.Copy(ctx, p.Store, p.ID, other)
			if err != nil || copied.Missing != 1 {
				t.Errorf("a backup: %+v, %v", copied, err)
			}
			c := kit.Must[*engine.Context](t)(other.Context(ctx, p.ID))
			defer c.Close()
			if m, err := c.Active().Message(ctx, id); err != nil || m.Position != 40 || m.Unavailable != nil {
				t.Errorf("in the backup: %+v, %v", m, err)
			}
			for f, err := range other.Check(ctx, nil, engine.CheckOptions{ReadData: true}) {
				if err != nil || f.Kind != integrity.KindLost {
					t.Errorf("a check of the backup: %+v, %v", f, err)
				}
			}
		})
	}
}

// TestStoredAgainBesideItsFile: the file of a message that was stored again meanwhile turns up elsewhere. It takes no
// other one's place.
func TestStoredAgainBesideItsFile(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, false)
	w := p.Want["main"][30]
	raw := kit.Must[[]byte](t)(os.ReadFile(p.Main[30]))
	p.Remove(p.Main[30])
	p.In(func(c *engine.Context) {
		kit.Append(t, c.Active(), engine.Draft{ID: w.ID, Body: json.RawMessage(w.Text)})
	})
	p.Settle("stored again")
	raw = bytes.Replace(raw, []byte("message 30"), []byte("edited"), 1)
	kit.Write(t, filepath.Join(p.Dir, "messages", "branch-alt", filepath.Base(p.Main[30])), raw)
	p.Repair(engine.CheckOptions{Adopt: true})
	p.Settle("found elsewhere")
	p.In(func(c *engine.Context) {
		ms := kit.Load(t, c.Active())
		if len(ms) != 41 || ms[30].Unavailable == nil || ms[40].Unavailable != nil || kit.BodyOf(ms[40]) != w.Text {
			t.Errorf("%d messages, %+v, %+v", len(ms), ms[30], ms[40])
		}
	})
	p.In(func(c *engine.Context) {
		if infos := kit.Must[[]engine.BranchInfo](t)(c.Branches(ctx)); len(infos) != len(p.Want) {
			t.Errorf("it was taken in as another message: %+v", infos)
		}
	})
	if !p.InTrash(raw) {
		t.Error("the file that turned up is nowhere")
	}
}

// TestFoundOlderVersion: of a lost message the file of an older version is put back, where it was or elsewhere. It
// becomes the message.
func TestFoundOlderVersion(t *testing.T) {
	ctx := context.Background()
	for _, d := range []struct {
		name   string
		marked bool // before it is put back
		folder string
	}{{"marked", true, "branch-main"}, {"marked, in another folder", true, "branch-alt"}, {"in another folder", false, "branch-alt"}} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := kit.NewPatient(t, false)
			w := p.Want["main"][30]
			older := kit.Must[[]byte](t)(os.ReadFile(p.Main[30]))
			p.In(func(c *engine.Context) {
				if err := c.Active().Replace(ctx, w.ID, engine.Draft{Body: []byte(`{"newer":true}`)}); err != nil {
					t.Fatal(err)
				}
				if err := c.Fold(ctx); err != nil {
					t.Fatal(err)
				}
				if err := c.Log.Exclusively(ctx, c.Log.Retire); err != nil {
					t.Fatal(err)
				}
			})
			p.Remove(p.Main[30], filepath.Join(p.Dir, "trash"))
			if d.marked {
				p.Settle("missing")
			}
			kit.Write(t, filepath.Join(p.Dir, "messages", d.folder, filepath.Base(p.Main[30])), older)
			p.Settle("put back")
			for _, f := range p.Check(true) {
				t.Errorf("a check tells of %+v", f)
			}
			p.VerifyIDs("put back", nil)
		})
	}
}

// TestOlderVersionElsewhere: where a journal has the version that counts, an older one that lies elsewhere does not
// become the message.
func TestOlderVersionElsewhere(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, false)
	w := p.Want["main"][30]
	older := kit.Must[[]byte](t)(os.ReadFile(p.Main[30]))
	p.In(func(c *engine.Context) {
		if err := c.Active().Replace(ctx, w.ID, engine.Draft{Body: []byte(`{"newer":true}`)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Fold(ctx); err != nil {
			t.Fatal(err)
		}
	})
	p.Remove(p.Main[30])
	kit.Write(t, filepath.Join(p.Dir, "messages", "branch-alt", filepath.Base(p.Main[30])), older)
	p.Settle("older version elsewhere")
	p.Want["main"][30].Text = `{"newer":true}`
	p.VerifyIDs("repaired", nil)
	if !p.InTrash(older) {
		t.Error("the older version is nowhere")
	}
}

// TestStoredAgainCollected: a message that was stored again is at the newer position of a removed line, also after a
// restore.
func TestStoredAgainCollected(t *testing.T) {
	ctx := context.Background()
	p := kit.NewPatient(t, false)
	w := p.Want["main"][30]
	p.Remove(p.Main[30])
	p.In(func(c *engine.Context) {
		kit.Append(t, c.Active(), engine.Draft{ID: w.ID, Body: json.RawMessage(w.Text)})
		kit.Check(t, c.Fold(ctx), c.Log.Exclusively(ctx, c.Log.Retire), c.Active().Rewind(ctx, 25))
	})
	r := kit.Must[trash.RestoreResult](t)(trash.Restore(ctx, p.Store, kit.TrashOf(t, p.Store, "line")[0].Item))
	p.In(func(c *engine.Context) {
		b := kit.Must[*engine.Branch](t)(c.Branch(r.Branch))
		ms := kit.Load(t, b)
		if len(ms) != 41 || ms[30].Unavailable == nil || ms[40].ID != w.ID || kit.BodyOf(ms[40]) != w.Text {
			t.Errorf("%d messages, %+v, %+v", len(ms), ms[30], ms[len(ms)-1])
		}
		if m, err := b.Message(ctx, w.ID); err != nil || m.Position != 40 {
			t.Errorf("%+v, %v", m, err)
		}
	})
	p.Settle("restored")
}
