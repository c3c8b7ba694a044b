package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// firstWrites are operations that may be the first of this version on a context of an older format.
var firstWrites = map[string]func(ctx context.Context, c *engine.Context) error{
	"append": func(ctx context.Context, c *engine.Context) error {
		_, err := c.Active().Append(ctx, engine.Draft{ID: kit.TestID(1), Body: []byte(`{"role":"user","content":"first"}`)})
		return err
	},
	"fork": func(ctx context.Context, c *engine.Context) error {
		_, err := c.Active().Fork(ctx, "first fork", 0)
		return err
	},
	"label": func(ctx context.Context, c *engine.Context) error {
		return c.Update(ctx, func(m *engine.Metadata) error { m.Title += ", changed"; return nil })
	},
	"fold": func(ctx context.Context, c *engine.Context) error { return c.Fold(ctx) },
	"collect": func(ctx context.Context, c *engine.Context) error {
		for _, err := range trash.Collect(ctx, c.Store, trash.CollectOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"archive": func(ctx context.Context, c *engine.Context) error {
		_, err := c.Archive(ctx, engine.ArchiveOptions{})
		return err
	},
}

// TestUpgradeCut cuts the power at operations of the first write to stores of older formats; the stores together cover
// each operation. Whatever the old store showed is there, with the write or without it. A check finds no error, and the
// next write completes the upgrade.
func TestUpgradeCut(t *testing.T) {
	t.Parallel()
	files := kit.Must[[]string](t)(filepath.Glob("../../testdata/stores/v[123]/*.tar.zst"))
	if len(files) == 0 {
		t.Fatal("no golden stores")
	}
	states, stride := 0, 3
	if testing.Short() {
		stride = 47
	}
	for i, file := range files {
		if strings.HasPrefix(filepath.Base(file), "damaged") {
			continue // a repair comes first
		}
		disk := kit.GoldenDisk(t, file)
		if i%2 == 0 {
			editTitles(t, disk)
		}
		before, err := shownOn(disk)
		kit.Check(t, err)
		for _, name := range slices.Sorted(maps.Keys(firstWrites)) {
			n, err := cutFirstWrite(disk, before, firstWrites[name], (i+kit.Today())%stride, stride)
			if states += n; err != nil {
				t.Errorf("%s, %s: %v", file, name, err)
			}
		}
	}
	t.Logf("%d disk states", states)
}

// editTitles edits the metadata.json of each context by hand. In the older formats the file counts as a whole.
func editTitles(t *testing.T, disk *crashfs.FS) {
	t.Helper()
	for e, err := range disk.ReadDir(".") {
		kit.Check(t, err)
		name := e.Name() + "/metadata.json"
		if b, err := vfs.ReadFile(disk, name, 1<<20); err == nil {
			kit.Check(t, disk.Replace(name, bytes.Replace(b, []byte(`"title": "`), []byte(`"title": "edited `), 1)))
		}
	}
	kit.Check(t, disk.SyncAll())
}

// cutFirstWrite cuts the power at operations of a write to every context of the store on a disk: the one with number
// first, and after each the next but stride.
func cutFirstWrite(
	golden *crashfs.FS, before map[string]string, write func(context.Context, *engine.Context) error, first, stride int,
) (states int, err error) {
	whole := golden.Clone()
	if err := writeAll(whole, write); err != nil {
		return 0, err
	}
	after, err := shownOn(whole)
	if err != nil {
		return 0, err
	}
	choices := []crashfs.Choice{crashfs.Lose, crashfs.Keep, crashfs.ZeroFill, crashfs.Random(1)}
	begin := len(golden.Ops())
	for k := begin + 1 + first; ; k += stride {
		disk := golden.Clone()
		disk.CutAt(k)
		err := writeAll(disk, write)
		if !disk.PowerCut() {
			return states, err
		}
		for _, choice := range choices {
			states++
			if err := verifyUpgrade(disk.Crash(choice), before, after); err != nil {
				return states, fmt.Errorf("power cut at operation %d (%s), disk %s: %w", k-begin, kit.LastOp(disk), choice, err)
			}
		}
	}
}

// writeAll opens the store on a disk, and writes to each context.
func writeAll(disk *crashfs.FS, write func(context.Context, *engine.Context) error) error {
	s, err := kit.OpenCrash(disk, engine.InOrder())
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	for id, err := range s.IDs() {
		if err != nil {
			return err
		}
		c, err := s.Context(ctx, id)
		if err != nil {
			return err
		}
		if err := errors.Join(write(ctx, c), c.Close()); err != nil {
			return err
		}
	}
	return nil
}

// verifyUpgrade opens a disk after a power cut, and goes on working with it.
func verifyUpgrade(disk *crashfs.FS, before, after map[string]string) error {
	got, err := shownOn(disk)
	if err != nil {
		return err
	}
	for key, text := range before {
		_, stays := after[key]
		if now, ok := got[key]; now != text && now != after[key] || !ok && stays {
			return fmt.Errorf("%s: shows\n%s\nbefore\n%s\nafter the write\n%s", key, now, text, after[key])
		}
	}
	if err := findsNoError(disk); err != nil {
		return err
	}
	more := kit.TestID(2)
	err = writeAll(disk, func(ctx context.Context, c *engine.Context) error {
		_, err := c.Active().Append(ctx, engine.Draft{ID: more, Body: []byte(`{"next":1}`)})
		return err
	})
	if err != nil {
		return fmt.Errorf("going on: %w", err)
	}
	disk = disk.Crash(crashfs.Lose) // what was acknowledged is durable
	again, err := shownOn(disk)
	if err != nil {
		return fmt.Errorf("after going on: %w", err)
	}
	for key, text := range got {
		if strings.Contains(key, " branch ") && !strings.HasPrefix(again[key], text) {
			return fmt.Errorf("after going on: %s shows\n%s\nbefore\n%s", key, again[key], text)
		}
		if active, ok := strings.CutPrefix(text, "active "); ok {
			active, _, _ = strings.Cut(active, "\n")
			if !strings.Contains(again[key+" branch "+active], more.String()) {
				return fmt.Errorf("after going on: the message is missing on %s", active)
			}
		}
	}
	if err := isUpgraded(disk); err != nil {
		return err
	}
	return findsNoError(disk)
}

// isUpgraded reports an error unless a process of an older version refuses each context: its newest journal is of this
// version.
func isUpgraded(disk *crashfs.FS) error {
	s, err := kit.OpenCrash(disk, engine.ReadOnly())
	if err != nil {
		return err
	}
	defer s.Close()
	for id, err := range s.IDs() {
		if err != nil {
			return err
		}
		newest, begin := "", ""
		for e, err := range disk.ReadDir(id.String()) {
			name := e.Name()
			if err != nil || !strings.HasPrefix(name, "journal-") || len(name) < len(newest) || len(name) == len(newest) && name < newest {
				continue
			}
			b, err := vfs.ReadFile(disk, id.String()+"/"+name, 8<<20)
			if err != nil {
				return err
			}
			if line, _, _ := bytes.Cut(b, []byte("\n")); json.Valid(line) { // else it is only prepared, or a cut tore its begin
				newest, begin = name, string(line)
			}
		}
		if !strings.Contains(begin, `"journal/4"`) || strings.Contains(begin, `"mark":`) || !strings.Contains(begin, `"context/2"`) {
			return fmt.Errorf("%s of %s begins with %s", newest, id, begin)
		}
	}
	return nil
}

func findsNoError(disk *crashfs.FS) error {
	s, err := kit.OpenCrash(disk, engine.ReadOnly())
	if err != nil {
		return err
	}
	defer s.Close()
	for f, err := range s.Check(context.Background(), nil, engine.CheckOptions{ReadData: true}) {
		if err != nil {
			return err
		}
		if f.Severity == engine.SeverityError {
			return fmt.Errorf("check: %+v", f)
		}
	}
	return nil
}

// shownOn returns what the store on a disk shows: by context, by context and branch, and by item in the trash.
func shownOn(disk *crashfs.FS) (map[string]string, error) {
	s, err := kit.OpenCrash(disk, engine.ReadOnly())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	ctx, shown := context.Background(), map[string]string{}
	for id, err := range s.IDs() {
		if err != nil {
			return nil, err
		}
		c, err := s.Context(ctx, id)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		m := c.Metadata()
		shown[id.String()] = fmt.Sprintf("active %s\ntitle %s, state %s, config %s", m.ActiveBranch, m.Title, m.State, m.Config.Members())
		for _, b := range m.Branches {
			var text strings.Builder
			prompt, err := c.SystemPrompt(ctx, b.Name)
			fmt.Fprintf(&text, "prompt %q %v\n", prompt, err)
			branch, err := c.Branch(b.Name)
			if err != nil {
				return nil, err
			}
			for m, err := range branch.Messages(ctx) {
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(&text, "%d %s %s edited %v, unavailable %v", m.Position, m.ID, m.Role, m.Edited, m.Unavailable)
				if m.Unavailable == nil {
					fmt.Fprintf(&text, ": %s", kit.BodyOf(m))
				}
				text.WriteByte('\n')
			}
			shown[id.String()+" branch "+b.Name] = text.String()
		}
	}
	for item, err := range trash.List(ctx, s) {
		if err != nil {
			return nil, err
		}
		shown["item "+item.Item.String()] = item.Kind + " " + item.Name
	}
	return shown, nil
}
