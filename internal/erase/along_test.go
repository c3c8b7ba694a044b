package erase_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/importing"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// rollout is a session of Codex. It has the canary in a prompt, in the prompt's mirror, from which the title is made, and
// in a compaction.
const rollout = `
{"type":"session_meta","timestamp":"2026-07-01T11:16:12Z","payload":{"id":"019f1d64-a048-7e10-8a4d-fd6b9e9d7b34","cwd":"/p"}}
{"type":"event_msg","payload":{"type":"user_message","message":"` + kit.Canary + `"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + kit.Canary + `"}]}}
{"type":"event_msg","payload":{"type":"agent_message","message":"hello"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}}
{"type":"event_msg","payload":{"type":"user_message","message":"go on"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}}
{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","content":[{"text":"` + kit.Canary + `"}]}]}}
`

// kept are the numbers of the records that stay when the first prompt of the rollout is erased.
var kept = []int{0, 3, 4, 5, 6}

func importRollout(t *testing.T, s *engine.Store, path string) uuid.UUID {
	t.Helper()
	var id uuid.UUID
	for r, err := range importer.Import(t.Context(), importing.New(s), path, importer.Options{}) {
		kit.Check(t, err)
		id = r.Context
	}
	return id
}

func rolloutFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	kit.Check(t, os.WriteFile(path, []byte(rollout), 0o600))
	return path
}

// newImportedStore is a store with an imported rollout, whose trash has an edited metadata.json with the title.
func newImportedStore(t *testing.T, disk *crashfs.FS) (s *engine.Store, id, prompt uuid.UUID) {
	t.Helper()
	s = kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1)))
	id = importRollout(t, s, rolloutFile(t))
	metadata := id.String() + "/" + ctxfolder.MetadataFile
	b := string(kit.Must[[]byte](t)(vfs.ReadFile(disk, metadata, 1<<20)))
	edited := strings.Replace(b, `"project": "/p"`, `"project": "/q"`, 1)
	if edited == b || !strings.Contains(b, kit.Canary) {
		t.Fatal(b)
	}
	kit.Check(t, disk.Replace(metadata, []byte(edited)))
	c := kit.Must[*engine.Context](t)(s.Context(t.Context(), id))
	kit.Check(t, c.Seal(t.Context()))
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"role":"user","content":"later"}`)})
	for _, m := range kit.Load(t, c.Active()) {
		if m.Role == "user" && strings.Contains(kit.BodyOf(m), kit.Canary) {
			prompt = m.ID
		}
	}
	kit.Check(t, c.Close())
	return s, id, prompt
}

// verifyImported reports an error unless the prompt is erased, with what repeats it, and everything else is there.
func verifyImported(disk *crashfs.FS, id uuid.UUID) error {
	if found, err := kit.FilesWithCanary(disk); err != nil || len(found) > 0 {
		return fmt.Errorf("the canary is in %v, %w", found, err)
	}
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(context.Background(), id)
	if err != nil {
		return err
	}
	defer c.Close()
	if title := c.Current().Title; title != "" {
		return fmt.Errorf("the title is %q", title)
	}
	got, err := c.Active().Load(context.Background())
	if err != nil {
		return err
	}
	there := map[int64]bool{}
	for _, m := range got {
		if m.Unavailable == nil {
			there[m.Position] = true
		} else if !errors.Is(m.Unavailable, engine.ErrErased) {
			return m.Unavailable
		}
	}
	for _, n := range kept {
		if !there[int64(n)] {
			return fmt.Errorf("record %d is not there", n)
		}
	}
	if len(got) != 9 || len(there) != len(kept)+1 {
		return fmt.Errorf("%d messages, there are %v", len(got), there)
	}
	return nil
}

// TestEraseImportedPrompt: the mirror and the compaction that repeat a prompt go along with it, and the title made from
// it, in all copies. A dry run says so. Importing the file again brings nothing back.
func TestEraseImportedPrompt(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	s, id, prompt := newImportedStore(t, disk)
	l := listing.New(s)
	for _, err := range l.List(t.Context(), listing.ListOptions{}) {
		kit.Check(t, err)
	}
	if found, err := kit.FilesWithCanary(disk); err != nil || len(found) < 4 {
		t.Fatalf("the canary is in %v, %v", found, err)
	}
	for _, dryRun := range []bool{true, false} {
		done, err := kit.Erase(s, id, prompt, erase.Options{DryRun: dryRun})
		kit.Check(t, err)
		with, title, copies := map[uuid.UUID]bool{}, 0, 0
		for _, r := range done {
			if r.With == prompt {
				with[r.ID] = true
			}
			switch r.Reason {
			case "title":
				title++
			case "title in the trash":
				copies++
			}
		}
		if len(with) != 2 || title != 1 || copies != 1 {
			t.Errorf("dry run %v: %d messages go along, %d titles, %d copies of it in the trash: %+v", dryRun, len(with), title, copies, done)
		}
	}
	if err := verifyImported(disk, id); err != nil {
		t.Error(err)
	}
	for _, err := range l.List(t.Context(), listing.ListOptions{}) {
		kit.Check(t, err)
	}
	importRollout(t, s, rolloutFile(t))
	l.Close()
	kit.Check(t, s.Close())
	if err := verifyImported(disk, id); err != nil {
		t.Errorf("after another import: %v", err)
	}
}

// TestEraseChosenTitle: a title that a person chose stays, and what the import said goes.
func TestEraseChosenTitle(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	s, id, prompt := newImportedStore(t, disk)
	c := kit.Must[*engine.Context](t)(s.Context(t.Context(), id))
	kit.Check(t, c.Update(t.Context(), func(m *engine.Metadata) error {
		m.Title = "chosen"
		return nil
	}), c.Close())
	_, err := kit.Erase(s, id, prompt, erase.Options{})
	kit.Check(t, err)
	found, err := kit.FilesWithCanary(disk)
	c = kit.Must[*engine.Context](t)(s.Context(t.Context(), id))
	if err != nil || len(found) > 0 || c.Current().Title != "chosen" {
		t.Errorf("the title is %q, the canary in %v, %v", c.Current().Title, found, err)
	}
	kit.Check(t, c.Close(), s.Close())
}

// TestEraseNotTransitive: what goes along takes nothing along: an equal prompt has another mirror, and stays.
func TestEraseNotTransitive(t *testing.T) {
	t.Parallel()
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
	c := kit.Must[*engine.Context](t)(s.Create(t.Context(), imported()))
	b := c.Active()
	ids := func(n ...int) (all []uuid.UUID) {
		for _, n := range n {
			all = append(all, kit.TestID(n))
		}
		return all
	}
	body := []byte(`{"content":"go on"}`)
	kit.Append(t, b, engine.Draft{ID: kit.TestID(1), Role: "user", Body: body})
	kit.Append(t, b, engine.Draft{ID: kit.TestID(2), Role: "mirror", Body: body, CopyOf: ids(1)})
	kit.Append(t, b, engine.Draft{ID: kit.TestID(3), Role: "user", Body: body, CopyOf: ids(2, 99)}) // 99 is nowhere
	kit.Append(t, b, engine.Draft{ID: kit.TestID(4), Role: "user", Body: body, Repeats: ids(3)})
	kit.Append(t, b, engine.Draft{ID: kit.TestID(5), Role: "user", Body: body, Repeats: ids(4)})
	for _, step := range []struct {
		erase int
		want  string
	}{{5, "5"}, {3, "2 3 4 5"}, {3, "2 3 4 5"}} {
		_, err := kit.Erase(s, c.ID(), kit.TestID(step.erase), erase.Options{})
		kit.Check(t, err)
		kit.Check(t, c.Refresh(t.Context()))
		var erased []string
		for _, m := range kit.Load(t, b) {
			if m.Unavailable != nil {
				erased = append(erased, fmt.Sprint(m.Position+1))
			}
		}
		if got := strings.Join(erased, " "); got != step.want {
			t.Errorf("after an erase of %d: %s, wanted %s", step.erase, got, step.want)
		}
	}
	kit.Check(t, c.Close(), s.Close())
}

// imported is the metadata of a context that was imported.
func imported() (m engine.Metadata) {
	m.Extra.Set(origin.Key, []byte(`{"format":"codex"}`))
	return m
}

// TestEraseImportedCut cuts the power at every operation of such an erase. To erase the prompt again leaves nothing of
// it, also where the first erase had removed the prompt and not yet its copies.
func TestEraseImportedCut(t *testing.T) {
	t.Parallel()
	states := 0
	for k := 1; ; k += kit.Stride() {
		disk := crashfs.New()
		s, id, prompt := newImportedStore(t, disk)
		disk.CutAt(len(disk.Ops()) + k)
		_, err := kit.Erase(s, id, prompt, erase.Options{})
		over := err == nil && !disk.PowerCut()
		if err != nil && !disk.PowerCut() {
			t.Fatal(err)
		}
		for _, choice := range []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.Random(uint64(k))} {
			states++
			after := disk.Crash(choice)
			if err := eraseImportedAgain(after, id, prompt, over); err != nil {
				t.Fatalf("power cut at operation %d (%s), disk %s: %v", k, kit.LastOp(disk), choice, err)
			}
		}
		if over {
			break
		}
	}
	t.Logf("%d disk states", states)
}

func eraseImportedAgain(disk *crashfs.FS, id, prompt uuid.UUID, over bool) error {
	if over {
		if err := verifyImported(disk, id); err != nil {
			return fmt.Errorf("after the erase: %w", err)
		}
	}
	s, err := kit.OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := kit.Erase(s, id, prompt, erase.Options{}); err != nil {
		return fmt.Errorf("erasing again: %w", err)
	}
	for _, d := range []*crashfs.FS{disk, disk.Crash(crashfs.Lose)} {
		if err := verifyImported(d, id); err != nil {
			return fmt.Errorf("after erasing again: %w", err)
		}
	}
	return kit.VerifyRepair(context.Background(), s)
}
