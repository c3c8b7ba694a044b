package integrity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ctxdir/ctxdir/archive"
	"github.com/ctxdir/ctxdir/blob"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/message"
	"github.com/google/uuid"
)

// packs checks the packs that messages are read from. Messages and payloads that damage costs are reported one by one.
func (x *examination) packs(ctx context.Context) error {
	if info, err := x.Dir.FS.Lstat(ctxfolder.Archive); err == nil && !info.IsDir() {
		p := repairable(KindFolder, SeverityError, ctxfolder.Archive, "not a folder")
		p.found = ctxfolder.Archive
		return x.report(p)
	}
	for d, err := range x.Log.VerifyPacks(ctx, x.ReadData) {
		if err != nil {
			return err
		}
		p := repairable(KindPack, SeverityWarning, packPath(d.Pack),
			fmt.Sprintf("%s, %d bytes from %d on: %v", d.Part, d.Size, d.Offset, d.Err))
		p.pack = d.Pack
		if len(d.Rows)+len(d.Payloads) > 0 {
			p.Severity = SeverityError
			p.Detail += fmt.Sprintf("; it affects %d messages and %d payloads", len(d.Rows), len(d.Payloads))
		}
		if err := x.report(p); err != nil {
			return err
		}
	}
	return x.unnamedPacks(ctx)
}

// unnamedPacks finds messages in packs that the index does not have: a pack may have been elsewhere for a while.
func (x *examination) unnamedPacks(ctx context.Context) error {
	uses, err := x.Log.PackUses(ctx)
	if err != nil {
		return err
	}
	for _, use := range uses {
		if use.Hidden > 0 {
			err := x.report(problem{pack: use.ID, Finding: Finding{
				Kind: KindForeign, Severity: SeverityWarning, Path: packPath(use.ID),
				Detail: fmt.Sprintf("the pack belongs to another history of the context; %d messages in it are not shown", use.Hidden),
			}})
			if err != nil {
				return err
			}
		}
		if use.Lost == 0 {
			continue
		}
		p := repairable(KindFound, SeverityWarning, packPath(use.ID), fmt.Sprintf("the pack has %d lost messages", use.Lost))
		p.pack, p.several = use.ID, int(use.Lost)
		if err := x.report(p); err != nil {
			return err
		}
	}
	return nil
}

// glanceAtArchived is glance for an archived message. It has no file; a file left in its place is a copy.
func (x *examination) glanceAtArchived(folder string, e *index.Entry) glance {
	info, err := x.Dir.StatMessage(folder, e.FileID())
	if !errors.Is(err, fs.ErrNotExist) && (err != nil || !ctxfolder.Untouched(info, e.Size, e.StoredAt())) {
		return glance{}
	}
	if !x.ReadData && e.Payloads == 0 {
		return glance{fine: true}
	}
	raw, ok := x.Log.ReadRecord(e)
	if e.Payloads == 0 {
		raw = nil
	}
	return glance{ok, raw}
}

// judgePacked is judge for an archived message without a usable file in its place.
func (x *examination) judgePacked(p *problem, is index.FileState, record []byte) ([]byte, *problem) {
	switch {
	case record != nil && is == index.FileMissing:
		return record, nil
	case record != nil:
		p.Kind, p.Severity, p.Repairable, p.Detail = KindDamaged, SeverityWarning, true, "another file is in its place; the pack has the message"
	default:
		p.Kind, p.Severity, p.Repairable = KindDamaged, SeverityError, true
		p.Path, p.Detail = packPath(p.entry.Pack), "the message is damaged in the pack"
	}
	return record, p
}

func packPath(id uuid.UUID) string { return ctxfolder.Archive + "/" + archive.FileName(id) }

// mendPacks makes new packs from the readable parts of damaged ones, which go to the trash.
func (r *repair) mendPacks(ctx context.Context, problems []problem) error {
	damaged := map[uuid.UUID]bool{}
	for _, p := range problems {
		if p.Kind == KindPack {
			damaged[p.pack] = true
		}
	}
	if err := r.findPacks(ctx, problems, damaged); err != nil {
		return err
	}
	if err := r.dropForeignPacks(ctx, problems); err != nil || len(damaged) == 0 {
		return err
	}
	uses, err := r.Log.PackUses(ctx)
	if err != nil {
		return err
	}
	plan := index.Plan{Pack: map[uuid.UUID]index.Spans{}, Payloads: PackedPayloads(r.Log)}
	for _, use := range uses {
		if damaged[use.ID] {
			plan.Aside = append(plan.Aside, use.ID)
			for line, spans := range use.Live {
				plan.Pack[line] = plan.Pack[line].With(spans)
			}
		}
	}
	moved, err := r.Log.Arrange(ctx, plan)
	if err != nil {
		return err
	}
	for _, id := range plan.Aside { // packs of which nothing is left
		if slices.Contains(moved.Removed, id) {
			continue
		}
		if err := r.exclusively(ctx, func() error { return r.Log.DropPack(id) }); err != nil {
			return err
		}
	}
	for _, p := range problems {
		if p.Kind == KindPack {
			r.did(p, "%d messages are in a new pack; this one is in the trash; was: %s", moved.Messages, p.Detail)
		}
	}
	return nil
}

// dropForeignPacks moves packs whose messages were adopted to the trash.
func (r *repair) dropForeignPacks(ctx context.Context, problems []problem) error {
	for _, p := range problems {
		if p.Kind != KindForeign || p.pack == uuid.Nil {
			continue
		}
		if err := r.exclusively(ctx, func() error { return r.Log.DropPack(p.pack) }); err != nil {
			return err
		}
		r.did(p, "adopted its messages and moved it to the trash; was: %s", p.Detail)
	}
	return nil
}

// findPacks takes packs with lost messages into the index.
func (r *repair) findPacks(ctx context.Context, problems []problem, damaged map[uuid.UUID]bool) error {
	rebuilt := false
	for _, p := range problems {
		if p.Kind != KindFound || p.pack == uuid.Nil {
			continue
		}
		if !rebuilt {
			if err := r.Log.Rebuild(ctx); err != nil {
				return err
			}
			rebuilt = true
		}
		r.left -= p.several
		r.did(p, "messages are available again: %s", p.Detail)
	}
	if rebuilt || len(r.lost) == 0 {
		return nil
	}
	return r.findMarked(ctx, damaged)
}

// findMarked searches whole packs for messages that this repair marked as lost: no pack is searched for a row that
// names a journal.
func (r *repair) findMarked(ctx context.Context, damaged map[uuid.UUID]bool) error {
	uses, err := r.Log.PackUses(ctx)
	if err != nil {
		return err
	}
	rebuilt := false
	for _, use := range uses {
		if use.Lost == 0 || damaged[use.ID] {
			continue
		}
		if !rebuilt {
			if err := r.Log.Rebuild(ctx); err != nil {
				return err
			}
			rebuilt = true
		}
		r.left -= int(use.Lost)
		p := problem{Finding: Finding{Kind: KindFound, Path: r.Dir.ID.String() + "/" + packPath(use.ID)}}
		r.did(p, "%d messages are available again: the pack has them", use.Lost)
	}
	return nil
}

// PackedPayloads returns a function for [index.Plan] that adds a message's payloads from old packs to a new one.
func PackedPayloads(log *index.Log) func(envelope []byte, add func([]byte) error) error {
	return func(envelope []byte, add func([]byte) error) error {
		env, err := message.ParseTrusted(envelope)
		if err != nil {
			return nil //nolint:nilerr // it goes on as it is
		}
		for sum := range blob.Mentions(env.Body) {
			if payload := log.ArchivedPayload(sum); payload != nil {
				if err := add(payload); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
