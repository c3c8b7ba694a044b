package listing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// MatchesID reports whether part, in lower case, names an id: as its beginning, its end, or the beginning of its last
// group of digits, which lists show.
func MatchesID(part string, id uuid.UUID) bool {
	text := id.String()
	return strings.HasPrefix(text, part) || strings.HasSuffix(text, part) || strings.HasPrefix(text[strings.LastIndexByte(text, '-')+1:], part)
}

// Resolve returns the context, also a legacy one, that ref names: a full id, an external id, a kind and an external id
// with a slash between them, or a unique part of an id (see [MatchesID]). An external id without a kind also names a
// context of any kind, if only one has it. Resolve fails with [engine.ErrNotExist], whatever ref looks like, with
// [engine.ErrInvalid] for an empty text, or with [engine.ErrAmbiguous].
//
// It derives an id from ref before it reads the store's folder, and reads the folder before the contexts.
func (l *Lister) Resolve(ref string) (uuid.UUID, error) {
	id, err := l.resolve(ref)
	return id, engine.Wrap(engine.Error{Op: findOp, Path: l.s.Path()}, err)
}

const findOp = "find"

func (l *Lister) resolve(ref string) (uuid.UUID, error) {
	if id, err := uuid.Parse(ref); err == nil && len(ref) == 36 {
		switch there, err := l.isThere(id); {
		case err != nil:
			return uuid.Nil, err
		case !there:
			return uuid.Nil, fmt.Errorf("%w: context %s", engine.ErrNotExist, ref)
		}
		return id, nil
	}
	if ref == "" {
		return uuid.Nil, fmt.Errorf("%w: the name of the context is empty", engine.ErrInvalid)
	}
	var found []uuid.UUID
	for _, id := range DerivedIDs(ref) {
		switch there, err := l.isThere(id); {
		case err != nil:
			return uuid.Nil, err
		case there:
			found = append(found, id)
		}
	}
	part := strings.ToLower(ref)
	if len(found) == 0 && strings.Trim(part, "0123456789abcdef-") == "" {
		for e, err := range l.s.Entries() {
			if err != nil {
				return uuid.Nil, err
			}
			if !MatchesID(part, e.ID) || slices.Contains(found, e.ID) {
				continue
			}
			format, err := l.s.Legacy(e.ID)
			if err != nil && !e.Folder {
				return uuid.Nil, err
			}
			if e.Folder || format != "" {
				found = append(found, e.ID)
			}
		}
	}
	if len(found) == 0 {
		all, err := l.summaries(context.Background(), nil)
		if err != nil {
			return uuid.Nil, err
		}
		for _, sum := range all {
			if sum.ExternalID == ref {
				found = append(found, sum.ID)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return uuid.Nil, Ambiguous(engine.Error{Op: findOp, Path: l.s.Path()}, ref, "contexts", found)
	}
	return uuid.Nil, fmt.Errorf("%w: no context matches %q by id prefix, id suffix or external id", engine.ErrNotExist, ref)
}

// DerivedIDs returns the ids that contexts have whose external id, or kind and external id with a slash between them, is
// ref.
func DerivedIDs(ref string) []uuid.UUID {
	ids := []uuid.UUID{ctxfolder.ExternalContextID("", ref)}
	if kind, external, ok := strings.Cut(ref, "/"); ok && kind != "" && external != "" {
		ids = append(ids, ctxfolder.ExternalContextID(kind, external))
	}
	return ids
}

// isThere reports whether a context or legacy context is at its path, or gets there right now.
func (l *Lister) isThere(id uuid.UUID) (bool, error) {
	if there, err := vfs.IsFolder(l.s.FS, id.String()); err != nil || there {
		return there, err
	}
	if format, err := l.s.Legacy(id); err != nil || format != "" {
		return format != "", err
	}
	// Another process may be publishing the context right now.
	if err := l.s.Settle(context.Background(), id); err != nil {
		return false, err
	}
	return vfs.IsFolder(l.s.FS, id.String())
}

// Ambiguous returns the error at, with [engine.ErrAmbiguous]: ref matches several of those that of names.
func Ambiguous(at engine.Error, ref, of string, matches []uuid.UUID) error {
	at.Matches = slices.SortedFunc(slices.Values(matches), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	at.Err = engine.Mark(fmt.Errorf("%q could be any of %d %s", ref, len(matches), of), engine.ErrAmbiguous)
	return &at
}
