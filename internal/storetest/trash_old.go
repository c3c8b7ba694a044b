package storetest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir/branch"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/loader"
	"github.com/google/uuid"
)

// CollectOld does what a collection of the format before did: it copies the messages that no branch shows to items in
// the context's trash, and cuts them off from their lines. It returns the items.
func CollectOld(t *testing.T, c *engine.Context) (items []engine.TrashItem) {
	t.Helper()
	ctx := context.Background()
	Check(t, c.Refresh(ctx))
	var files []string
	Check(t, c.Write(ctx, func(current *engine.Metadata) error {
		m := current.Clone()
		names := map[uuid.UUID]ctxfolder.Removed{}
		for _, r := range current.Removed {
			names[r.Line] = r
			branch.Purge(m, r.Line)
		}
		var trims []index.Item
		for _, o := range branch.Orphans(m) {
			end, err := c.End(m, o.Line.ID)
			if err != nil {
				return err
			}
			branch.Purge(m, o.Line.ID)
			if end == o.From {
				continue
			}
			was := names[o.Line.ID]
			item := ctxfolder.TrashItem{
				Kind: ctxfolder.TrashLine, Name: was.Name, Line: o.Line.ID, Parent: o.Line.Parent, Base: o.Line.Base, Folder: o.Line.Folder,
				From: o.From, To: end, Why: was.Why, RemovedAt: c.RemovalTime(m),
			}
			messages := oldPiece(t, c, loader.Span{Line: o.Line.ID, Folder: o.Line.Folder, From: o.From, To: end}, &files)
			items = append(items, OldItem(t, c, item, messages))
			trim, err := c.Log.TrimItem(o.Line.ID, o.From)
			if err != nil {
				return err
			}
			trims = append(trims, trim)
		}
		branch.Forget(m)
		return c.ReplaceMetadata(m, trims...)
	}), c.Fold(ctx))
	for _, path := range files {
		_ = os.Remove(filepath.Join(c.Store.Path(), c.Dir.ID.String(), path))
	}
	return items
}

// oldPiece returns the lines of a file of messages, and notes the message files.
func oldPiece(t *testing.T, c *engine.Context, span loader.Span, files *[]string) (lines []byte) {
	t.Helper()
	for e, err := range c.Log.All(context.Background(), span.Line, span.From, span.To) {
		Check(t, err)
		*files = append(*files, c.Dir.MessagePath(span.Folder, e.FileID()))
		raw, is, _ := c.Log.ReadFile(span.Line, e, span.Folder)
		if !is.Whole() && is != index.FileEdited {
			raw, _ = c.Log.ReadRecord(e)
		}
		if raw == nil {
			reason := "lost"
			if e.Lost != "" {
				reason = e.Lost
			}
			raw = Must[[]byte](t)(json.Marshal(struct {
				Version  string    `json:"ctxdir"`
				Position int64     `json:"position"`
				ID       uuid.UUID `json:"id"`
				Reason   string    `json:"reason"`
			}{"gap/1", e.Position, e.ID, reason}))
		}
		lines = append(append(lines, raw...), '\n')
	}
	return lines
}

// OldItem makes an item with the end of a line, as the format before had it: without a checksum.
func OldItem(t *testing.T, c *engine.Context, item ctxfolder.TrashItem, messages []byte) engine.TrashItem {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	path := filepath.Join(c.Dir.ID.String(), ctxfolder.Trash, id.String())
	folder := filepath.Join(c.Store.Path(), path)
	item.Version, item.RemovedAt = "trash/1", item.RemovedAt.UTC()
	Check(t, os.MkdirAll(folder, 0o700))
	Write(t, filepath.Join(folder, ctxfolder.TrashNote), append(Must[[]byte](t)(json.Marshal(item)), '\n'))
	Write(t, filepath.Join(folder, ctxfolder.PieceFile(1)), messages)
	Write(t, filepath.Join(folder, ctxfolder.ClearedFile), nil)
	return engine.TrashItem{
		Item: id, Path: filepath.ToSlash(path), Kind: item.Kind, Name: item.Name, Context: c.Dir.ID, RemovedAt: item.RemovedAt,
	}
}
