package storetest_test

import (
	"encoding/json"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// canaryState is a state in which the files of a context can be.
type canaryState struct {
	name    string
	options []engine.Option
	legacy  bool // the context was migrated
	killed  bool // its writer did not close it
	change  func(t *testing.T, x *canaryStore, s *ctxdir.Store, c *ctxdir.Context)
}

var canaryStates = []canaryState{
	{name: "fresh", options: []engine.Option{engine.WithFiles(engine.FilesHeld)}, killed: true},
	{name: "with files", options: []engine.Option{engine.WithFiles(engine.FilesOnReturn)}, killed: true},
	{name: "closed"},
	{name: "sealed", change: func(t *testing.T, _ *canaryStore, _ *ctxdir.Store, c *ctxdir.Context) {
		kit.Check(t, c.Admin().Seal(t.Context()))
	}},
	{name: "archived", change: func(t *testing.T, _ *canaryStore, s *ctxdir.Store, c *ctxdir.Context) { archiveWork(t, s, c, 0) }},
	{name: "mixed", change: func(t *testing.T, _ *canaryStore, s *ctxdir.Store, c *ctxdir.Context) {
		archiveWork(t, s, c, 3)
		again(t, c)
	}},
	{name: "externalised", change: func(t *testing.T, _ *canaryStore, _ *ctxdir.Store, c *ctxdir.Context) {
		_, err := c.Admin().Externalise(t.Context(), 1, false)
		kit.Check(t, err)
	}},
	{name: "legacy", legacy: true},
}

// archiveWork archives the context but for the newest messages of each branch.
func archiveWork(t *testing.T, s *ctxdir.Store, c *ctxdir.Context, keep int64) {
	t.Helper()
	_, err := s.Archive(t.Context(), ctxdir.ArchiveOptions{Contexts: []uuid.UUID{workID()}, KeepLast: keep})
	kit.Check(t, err, c.Refresh(t.Context()))
}

// again replaces a message by a version that says the same.
func again(t *testing.T, c *ctxdir.Context) {
	t.Helper()
	kit.Check(t, c.Active().Replace(t.Context(), messageID(kText), ctxdir.Draft{
		Body: json.RawMessage(`{"role":"user","content":"again: ` + kText.word() + `"}`),
	}))
}
