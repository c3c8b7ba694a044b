package histories

import (
	"context"
	"encoding/json"

	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/bridge"
	"github.com/google/uuid"
)

// conversation converts the errors of the engine to those of package ctxdir.
type conversation struct{ importer.Conversation }

func (c conversation) Branches(ctx context.Context) ([]importer.Branch, error) {
	branches, err := c.Conversation.Branches(ctx)
	return branches, bridge.Error(err)
}

func (c conversation) Messages(ctx context.Context, branch string, from, to int64) ([]importer.Record, error) {
	records, err := c.Conversation.Messages(ctx, branch, from, to)
	return records, bridge.Error(err)
}

func (c conversation) Fork(ctx context.Context, name, from string, at int64, attrs map[string]json.RawMessage) error {
	return bridge.Error(c.Conversation.Fork(ctx, name, from, at, attrs))
}

func (c conversation) Append(ctx context.Context, branch string, at int64, recs []importer.Record) error {
	return bridge.Error(c.Conversation.Append(ctx, branch, at, recs))
}

func (c conversation) Replace(ctx context.Context, branch string, recs []importer.Record) error {
	return bridge.Error(c.Conversation.Replace(ctx, branch, recs))
}

func (c conversation) Find(ctx context.Context, id uuid.UUID) (branch string, at int64, ok bool, err error) {
	branch, at, ok, err = c.Conversation.Find(ctx, id)
	return branch, at, ok, bridge.Error(err)
}

func (c conversation) Describe(ctx context.Context, info importer.Info, changed bool) error {
	return bridge.Error(c.Conversation.Describe(ctx, info, changed))
}

func (c conversation) SetActive(ctx context.Context, branch string) error {
	return bridge.Error(c.Conversation.SetActive(ctx, branch))
}

func (c conversation) Close() error { return bridge.Error(c.Conversation.Close()) }
