package main

import (
	"context"
	"errors"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
)

// importTarget is the store that an import writes to. If it is missing, the first conversation creates it, so that an
// import of nothing leaves nothing behind.
type importTarget struct {
	a     *app
	store *ctxdir.Store // nil while it is missing
	into  importer.Destination
	err   error // of creating the store
}

// openTarget opens the store in use, if it is there.
func (a *app) openTarget() (*importTarget, error) {
	t := &importTarget{a: a}
	s, err := a.open()
	switch {
	case err == nil:
		t.use(s)
	case !errors.Is(err, ctxdir.ErrNoStore):
		return nil, err
	}
	return t, nil
}

func (t *importTarget) use(s *ctxdir.Store) { t.store, t.into = s, s.Importer() }

// Open implements [importer.Store].
func (t *importTarget) Open(ctx context.Context, info importer.Info) (importer.Conversation, error) {
	if t.store == nil {
		s, err := t.a.openOrInit()
		if err != nil {
			t.err = err
			return nil, err
		}
		t.use(s)
	}
	return t.into.Open(ctx, info)
}

// Has implements [importer.Known].
func (t *importTarget) Has(ctx context.Context, h importer.History) bool {
	return t.into != nil && t.into.Has(ctx, h)
}

// Note implements [importer.Known].
func (t *importTarget) Note(h importer.History, contexts []uuid.UUID) {
	if t.into != nil {
		t.into.Note(h, contexts)
	}
}

// save keeps what the import noted. Without it, the next import reads the files again.
func (t *importTarget) save() {
	if t.into != nil {
		_ = t.into.Save()
	}
}

// close ends the import, which failed with err.
func (t *importTarget) close(ctx context.Context, err error) error {
	if t.store == nil {
		return err
	}
	return t.a.closeStore(ctx, t.store, err)
}
