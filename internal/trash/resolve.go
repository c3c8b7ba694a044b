package trash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// ResolveItem returns the item that ref names: what named the thing before its removal, a full id, or a unique part of
// one. For a context, its former name is all that [engine.Store.Resolve] takes; for a branch, it is its name. A former
// name precedes a part of an item's id, which is the time of the removal and may begin like the id of another context.
// ResolveItem fails with [engine.ErrNotExist], with [engine.ErrInvalid] for an empty text, or with [engine.ErrAmbiguous].
func ResolveItem(ctx context.Context, s *engine.Store, ref string) (uuid.UUID, error) {
	id, err := resolveItem(ctx, s, ref)
	return id, engine.Wrap(engine.Error{Op: findOp, Path: s.Path()}, err)
}

const findOp = "find in trash of"

func resolveItem(ctx context.Context, s *engine.Store, ref string) (uuid.UUID, error) {
	if ref == "" {
		return uuid.Nil, fmt.Errorf("%w: the name of the item is empty", engine.ErrInvalid)
	}
	part, derived := strings.ToLower(ref), listing.DerivedIDs(ref)
	isPart := func(id uuid.UUID) bool { return listing.MatchesID(part, id) }
	var found, items, external []uuid.UUID
	var failed error
	for t, err := range EachItem(ctx, s, nil, func(id uuid.UUID, folder bool) bool { return folder || isPart(id) }) {
		switch {
		case t == nil:
			return uuid.Nil, err
		case err != nil:
			failed = cmp.Or(failed, err)
		case t.isBranch() && t.Item.Name == ref,
			t.isContext() && (isPart(t.Item.Context) || slices.Contains(derived, t.Item.Context)):
			found = append(found, t.ID)
		case isPart(t.ID):
			items = append(items, t.ID)
		case t.isContext() && externalID(s, t) == ref:
			external = append(external, t.ID)
		}
	}
	for _, others := range [][]uuid.UUID{items, external} {
		if len(found) == 0 {
			found = others
		}
	}
	slices.SortFunc(found, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	found = slices.Compact(found) // a copied context has items of the same ids
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return uuid.Nil, listing.Ambiguous(engine.Error{Op: findOp, Path: s.Path()}, ref, "items", found)
	case failed != nil:
		why := fmt.Errorf("%w: no item that could be listed is named %q: %w", engine.ErrNotExist, ref, failed)
		return uuid.Nil, &engine.Error{Op: findOp, Path: s.Path(), Err: why}
	}
	return uuid.Nil, fmt.Errorf("%w: no item, removed context or removed branch is named %q", engine.ErrNotExist, ref)
}

// isContext reports whether the item is a removed context.
func (t *trashItem) isContext() bool {
	return t.Problem == nil && t.in == uuid.Nil && t.Item.Kind == ctxfolder.TrashContext
}

// isBranch reports whether the item is a removed branch, or the end of a rewound one.
func (t *trashItem) isBranch() bool { return t.Problem == nil && t.Item.Kind == ctxfolder.TrashLine }

// externalID returns the external id of a removed context, "" if it has none or cannot be read.
func externalID(s *engine.Store, t *trashItem) string {
	var m struct {
		ExternalID string `json:"external_id"`
	}
	path := t.Path + "/" + t.Item.Context.String() + "/" + ctxfolder.MetadataFile
	b, err := vfs.ReadFile(s.FS, path, ctxfolder.MaxMetadata)
	if err = errors.Join(err, json.Unmarshal(b, &m)); err != nil {
		return ""
	}
	return m.ExternalID
}
