package erase

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// findPacks finds the packs that have a version of the messages, and notes the payloads that these versions refer to.
func (e *eraser) findPacks(x *target) ([]trace, error) {
	var found []trace
	for v, err := range x.c.Log.ArchivedVersions(e.ids) {
		if err != nil {
			return nil, err
		}
		e.refer(v.Envelope)
		p := ctxfolder.Archive + "/" + archive.FileName(v.Pack)
		if n := len(found); n > 0 && found[n-1].path == p && found[n-1].id == v.ID {
			found[n-1].bytes += int64(len(v.Envelope))
			continue
		}
		found = append(found, trace{path: p, id: v.ID, bytes: int64(len(v.Envelope)), kind: "pack", pack: true})
	}
	return found, nil
}

// repack rewrites the packs that have the messages. Their rows in the index say "erased" by now, so the new packs leave
// them out. Payloads that nothing in the new pack refers to become blobs, and go with those.
func (e *eraser) repack(ctx context.Context, x *target) error {
	with := map[uuid.UUID]bool{}
	for v, err := range x.c.Log.ArchivedVersions(e.ids) {
		if err != nil {
			return err
		}
		with[v.Pack] = true
	}
	if len(with) == 0 {
		return nil
	}
	uses, err := x.c.Log.PackUses(ctx)
	if err != nil {
		return err
	}
	plan := index.Plan{Pack: map[uuid.UUID]index.Spans{}, Payloads: integrity.PackedPayloads(x.c.Log)}
	for _, use := range uses {
		if with[use.ID] {
			engine.AddSpans(plan.Pack, use.Live)
		}
	}
	if len(plan.Pack) > 0 {
		moved, err := x.c.Log.Arrange(ctx, plan)
		if err != nil {
			return err
		}
		if moved.Stayed > 0 {
			return fmt.Errorf("%w: %d messages of the pack are unreadable; run a repair first", engine.ErrDamaged, moved.Stayed)
		}
		for _, id := range moved.Removed {
			delete(with, id)
		}
	}
	return x.c.Exclusively(ctx, func() error {
		for id := range with { // packs that no line is read from
			if err := x.c.Log.RemoveFromPack(id, e.ids); err != nil {
				return err
			}
		}
		return nil
	})
}

// trashPack reports whether a pack in the trash may have one of the messages. It then goes: another pack has the rest.
func (e *eraser) trashPack(fsys vfs.FS, p string) (t trace, ok bool, err error) {
	folder, err := fsys.Sub(path.Dir(p))
	if err != nil {
		return t, false, err
	}
	defer folder.Close()
	t.path, t.kind, t.whole = p, "pack in the trash", true
	for f, err := range archive.Scan(folder, path.Base(p)) {
		if errors.Is(err, archive.ErrVersion) {
			return t, false, nil
		}
		if err != nil {
			return t, false, err
		}
		if e.ids[f.ID] && f.Name == nil {
			t.id, ok = f.ID, true
			t.bytes += f.Size
			e.refer(f.Envelope)
		}
	}
	if !ok { // so damaged that it may have one: it goes as well
		if ok, err = archive.MayHold(folder, path.Base(p), e.ids); errors.Is(err, archive.ErrVersion) {
			err = nil
		}
	}
	return t, ok, err
}
