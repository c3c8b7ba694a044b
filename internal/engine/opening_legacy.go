package engine

import (
	"context"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
)

// MigrateAndOpen migrates the legacy context with that id and name in the store, unless the store is read-only, and
// opens it.
func (s *Store) MigrateAndOpen(ctx context.Context, id uuid.UUID, name string) (c *Context, err error) {
	if s.readOnly {
		return s.View(ctx, id, name)
	}
	err = s.migrateInStore(ctx, name)
	if c, oerr := s.open(ctx, id); oerr == nil { // after an error: another process migrated it meanwhile
		return c, nil
	} else if err == nil {
		err = oerr
	}
	return nil, err
}

// View opens a legacy context for reading without changing it: it migrates it into a temporary store, and opens it
// there.
func (s *Store) View(ctx context.Context, id uuid.UUID, name string) (*Context, error) {
	c, err := s.view(ctx, id, name)
	if err != nil {
		if c, oerr := s.open(ctx, id); oerr == nil { // another process migrated it meanwhile
			return c, nil
		}
	}
	return c, err
}

func (s *Store) view(ctx context.Context, id uuid.UUID, name string) (*Context, error) {
	text := name
	if name == id.String() {
		text += "/" + legacy.ContextFile
	}
	src, err := legacy.Open(s.fs, name, legacy.Options{Limit: s.opts.maxMessage, Stop: ctx.Err})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	info, err := s.fs.Lstat(text)
	if err != nil {
		return nil, err
	}
	in, remove, err := scratchStore(s)
	if err != nil {
		return nil, err
	}
	st := &stagingLegacy{to: in, src: src, id: id, at: info.ModTime()}
	err = st.run(ctx)
	if err == nil {
		err = in.fs.Rename(ctxfolder.StagingFolder(id), id.String())
	}
	var c *Context
	if err == nil {
		c, err = in.open(ctx, id)
	}
	if err != nil {
		remove()
		return nil, err
	}
	c.asView(src.Format, remove)
	return c, nil
}
