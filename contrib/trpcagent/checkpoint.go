package trpcagent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	"trpc.group/trpc-go/trpc-agent-go/graph"
)

var _ graph.CheckpointSaver = (*Saver)(nil)

// checkpointKind is the kind of the contexts that hold checkpoints.
const checkpointKind = "trpc-agent-checkpoint"

// Saver keeps checkpoints in a store. A lineage is a context, a namespace is a branch, and a checkpoint is a message.
type Saver struct {
	store *ctxdir.Store
}

// NewSaver returns a saver that keeps its checkpoints in store. The caller closes the store.
func NewSaver(store *ctxdir.Store) *Saver { return &Saver{store} }

// Close does nothing: the caller closes the store.
func (s *Saver) Close() error { return nil }

// saved is the body of a message.
type saved struct {
	Checkpoint *graph.Checkpoint         `json:"checkpoint"`
	Metadata   *graph.CheckpointMetadata `json:"metadata"`
	Writes     []graph.PendingWrite      `json:"writes,omitempty"`
}

// lineage is an open context.
type lineage struct {
	*ctxdir.Context
	id string
}

// use calls f with the lineage of a configuration, if it exists.
func (s *Saver) use(ctx context.Context, config map[string]any, f func(lineage) error) error {
	id := graph.GetLineageID(config)
	if id == "" {
		return errors.New("lineage_id is required")
	}
	err := s.store.Use(ctx, ctxdir.ContextID(checkpointKind, id), func(c *ctxdir.Context) error { return f(lineage{c, id}) })
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil
	}
	return err
}

// branchOf returns the name of the branch of a namespace.
func branchOf(namespace string) string {
	if namespace == graph.DefaultCheckpointNamespace {
		return "main"
	}
	return "ns:" + namespace
}

func namespaceOf(branch string) string {
	if branch == "main" {
		return graph.DefaultCheckpointNamespace
	}
	return strings.TrimPrefix(branch, "ns:")
}

// messageID returns the id of the message of a checkpoint. It depends on the namespace: a namespace does not have the
// checkpoints that its branch inherits.
func (l lineage) messageID(namespace, checkpoint string) uuid.UUID {
	return uuid.NewSHA1(l.ID(), []byte(branchOf(namespace)+"\x00"+checkpoint))
}

// find returns the message of a checkpoint in a namespace, or nil.
func (l lineage) find(ctx context.Context, namespace, checkpoint string) (*ctxdir.Message, error) {
	b, err := l.Branch(branchOf(namespace))
	if err == nil {
		var m *ctxdir.Message
		if m, err = b.Message(ctx, l.messageID(namespace, checkpoint)); err == nil {
			return m, nil
		}
	}
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

// search returns the message of a checkpoint and its namespace, whichever that is, or nil.
func (l lineage) search(ctx context.Context, checkpoint string) (*ctxdir.Message, string, error) {
	if checkpoint == "" {
		return nil, "", nil
	}
	for _, b := range l.Metadata().Branches {
		namespace := namespaceOf(b.Name)
		if m, err := l.find(ctx, namespace, checkpoint); m != nil || err != nil {
			return m, namespace, err
		}
	}
	return nil, "", nil
}

func (l lineage) tuple(ctx context.Context, namespace string, m *ctxdir.Message) (*graph.CheckpointTuple, error) {
	body, err := m.Body(ctx)
	if err != nil {
		return nil, err
	}
	var r saved
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	t := &graph.CheckpointTuple{Checkpoint: r.Checkpoint, Metadata: r.Metadata, PendingWrites: r.Writes}
	t.Config = graph.CreateCheckpointConfig(l.id, r.Checkpoint.ID, namespace)
	if parent := r.Checkpoint.ParentCheckpointID; parent != "" {
		_, namespace, err = l.search(ctx, parent)
		t.ParentConfig = graph.CreateCheckpointConfig(l.id, parent, namespace)
	}
	return t, err
}

// Get returns a checkpoint, or nil if there is none.
func (s *Saver) Get(ctx context.Context, config map[string]any) (*graph.Checkpoint, error) {
	t, err := s.GetTuple(ctx, config)
	if t == nil || err != nil {
		return nil, err
	}
	return t.Checkpoint, nil
}

// GetTuple returns a checkpoint with its metadata, or nil if there is none. Without a checkpoint id it returns the
// newest of the namespace.
func (s *Saver) GetTuple(ctx context.Context, config map[string]any) (t *graph.CheckpointTuple, err error) {
	namespace, id := graph.GetNamespace(config), graph.GetCheckpointID(config)
	err = s.use(ctx, config, func(l lineage) error {
		if id == "" {
			all, err := l.list(ctx, branchOf(namespace), &graph.CheckpointFilter{Limit: 1})
			if len(all) > 0 {
				t = all[0]
			}
			return err
		}
		m, err := l.find(ctx, namespace, id)
		if m != nil {
			t, err = l.tuple(ctx, namespace, m)
		}
		return err
	})
	return t, err
}

// List returns checkpoints of a namespace, or of all for the empty one, the newest first.
func (s *Saver) List(ctx context.Context, config map[string]any, filter *graph.CheckpointFilter) (all []*graph.CheckpointTuple, err error) {
	if filter == nil {
		filter = &graph.CheckpointFilter{}
	}
	only := graph.GetNamespace(config)
	if only != "" {
		only = branchOf(only)
	}
	err = s.use(ctx, config, func(l lineage) error {
		all, err = l.list(ctx, only, filter)
		return err
	})
	return all, err
}

// list returns checkpoints on a branch, or on all for an empty name. A checkpoint that a branch inherits belongs to
// another one.
func (l lineage) list(ctx context.Context, only string, f *graph.CheckpointFilter) (all []*graph.CheckpointTuple, err error) {
	infos, err := l.Branches(ctx)
	for _, info := range infos {
		if only != "" && info.Name != only {
			continue
		}
		b, err := l.Branch(info.Name)
		if err != nil {
			return nil, err
		}
		from := info.Base
		if f.Limit > 0 && f.Before == nil && len(f.Metadata) == 0 {
			from = max(from, info.Messages-int64(f.Limit))
		}
		for m, err := range b.Messages(ctx, from, ctxdir.End) {
			if err != nil {
				return nil, err
			}
			t, err := l.tuple(ctx, namespaceOf(info.Name), m)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b *graph.CheckpointTuple) int { return b.Checkpoint.Timestamp.Compare(a.Checkpoint.Timestamp) })
	return choose(all, f), err
}

// choose applies a filter to checkpoints, the newest first.
func choose(all []*graph.CheckpointTuple, f *graph.CheckpointFilter) []*graph.CheckpointTuple {
	if id := graph.GetCheckpointID(f.Before); id != "" {
		at := slices.IndexFunc(all, func(t *graph.CheckpointTuple) bool { return t.Checkpoint.ID == id })
		all = all[at+1:]
	}
	all = slices.DeleteFunc(all, func(t *graph.CheckpointTuple) bool {
		for k, v := range f.Metadata {
			if t.Metadata == nil || t.Metadata.Extra[k] != v {
				return true
			}
		}
		return false
	})
	if f.Limit > 0 && len(all) > f.Limit {
		all = all[:f.Limit]
	}
	return all
}

// Put stores a checkpoint.
func (s *Saver) Put(ctx context.Context, r graph.PutRequest) (map[string]any, error) {
	return s.PutFull(ctx, graph.PutFullRequest{Config: r.Config, Checkpoint: r.Checkpoint, Metadata: r.Metadata})
}

// PutFull stores a checkpoint and its pending writes in one commit. The first checkpoint of a namespace forks the branch
// of its parent.
func (s *Saver) PutFull(ctx context.Context, r graph.PutFullRequest) (map[string]any, error) {
	id, namespace := graph.GetLineageID(r.Config), graph.GetNamespace(r.Config)
	if id == "" {
		return nil, errors.New("lineage_id is required")
	}
	if r.Checkpoint == nil {
		return nil, errors.New("checkpoint cannot be nil")
	}
	if r.Metadata == nil {
		r.Metadata = graph.NewCheckpointMetadata(graph.CheckpointSourceUpdate, 0)
	}
	m := ctxdir.Metadata{Kind: checkpointKind, ExternalID: id, Labels: map[string]string{"tool": "trpc-agent-go"}}
	err := s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) error {
		l := lineage{c, id}
		return l.put(ctx, namespace, saved{r.Checkpoint, r.Metadata, r.PendingWrites})
	})
	return graph.CreateCheckpointConfig(id, r.Checkpoint.ID, namespace), err
}

func (l lineage) put(ctx context.Context, namespace string, r saved) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	was, err := l.find(ctx, namespace, r.Checkpoint.ID)
	if err != nil {
		return err
	}
	parent, from, err := l.search(ctx, r.Checkpoint.ParentCheckpointID)
	if err != nil {
		return err
	}
	name, d := branchOf(namespace), ctxdir.Draft{ID: l.messageID(namespace, r.Checkpoint.ID), CreatedAt: r.Checkpoint.Timestamp, Body: body}
	_, err = l.Commit(ctx, func(tx *ctxdir.Tx) error {
		if was != nil {
			return tx.Replace(name, d.ID, d, ctxdir.WriteOptions{Shared: true})
		}
		if tx.Metadata().Branch(name) == nil {
			fork := func() error { return tx.NewBranch(name) }
			if parent != nil {
				fork = func() error { return tx.Fork(name, branchOf(from), parent.Position+1) }
			}
			if err := fork(); err != nil {
				return err
			}
		}
		return tx.Append(name, d)
	})
	return err
}

// PutWrites replaces the pending writes of a checkpoint.
func (s *Saver) PutWrites(ctx context.Context, r graph.PutWritesRequest) error {
	namespace, id := graph.GetNamespace(r.Config), graph.GetCheckpointID(r.Config)
	if id == "" {
		return errors.New("lineage_id and checkpoint_id are required")
	}
	return s.use(ctx, r.Config, func(l lineage) error {
		m, err := l.find(ctx, namespace, id)
		if m == nil || err != nil {
			return err
		}
		t, err := l.tuple(ctx, namespace, m)
		if err != nil {
			return err
		}
		return l.put(ctx, namespace, saved{t.Checkpoint, t.Metadata, r.Writes})
	})
}

// DeleteLineage moves the checkpoints of a lineage to the trash of the store.
func (s *Saver) DeleteLineage(ctx context.Context, id string) error {
	if _, err := s.store.Remove(ctx, ctxdir.ContextID(checkpointKind, id)); !errors.Is(err, ctxdir.ErrNotExist) {
		return err
	}
	return nil
}
