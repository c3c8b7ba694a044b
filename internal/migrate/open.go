package migrate

import (
	"context"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/google/uuid"
)

// Open migrates the legacy context with that id and name in the store, unless the store is read-only, and
// opens it.
func Open(ctx context.Context, s *engine.Store, id uuid.UUID, name string) (c *engine.Context, err error) {
	if s.ReadOnly {
		return View(ctx, s, id, name)
	}
	err = convertInStore(ctx, s, name)
	if c, oerr := s.Open(ctx, id); oerr == nil { // after an error: another process migrated it meanwhile
		return c, nil
	} else if err == nil {
		err = oerr
	}
	return nil, err
}

// View opens a legacy context for reading without changing it: it migrates it into a temporary store, and opens it
// there.
func View(ctx context.Context, s *engine.Store, id uuid.UUID, name string) (*engine.Context, error) {
	c, err := view(ctx, s, id, name)
	if err != nil {
		if c, oerr := s.Open(ctx, id); oerr == nil { // another process migrated it meanwhile
			return c, nil
		}
	}
	return c, err
}

func view(ctx context.Context, s *engine.Store, id uuid.UUID, name string) (*engine.Context, error) {
	text := name
	if name == id.String() {
		text += "/" + legacy.ContextFile
	}
	src, err := legacy.Open(s.FS, name, legacy.Options{Limit: s.Options.MaxMessage, Stop: ctx.Err})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	info, err := s.FS.Lstat(text)
	if err != nil {
		return nil, err
	}
	in, remove, err := scratchStore(s)
	if err != nil {
		return nil, err
	}
	st := &stager{to: in, src: src, id: id, at: info.ModTime()}
	err = st.run(ctx)
	if err == nil {
		err = in.FS.Rename(ctxfolder.StagingFolder(id), id.String())
	}
	var c *engine.Context
	if err == nil {
		c, err = in.Open(ctx, id)
	}
	if err != nil {
		remove()
		return nil, err
	}
	c.AsView(src.Format, remove)
	return c, nil
}
