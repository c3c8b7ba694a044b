package trpcagent_test

import (
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/trpcagent"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
	"trpc.group/trpc-go/trpc-agent-go/graph"
)

// TestFork: BranchFrom forks the branch of the namespace at the checkpoint, and copies nothing. A namespace does not
// list what its branch inherits. Another store on the folder shows the same.
func TestFork(t *testing.T) {
	ctx := t.Context()
	store := adaptertest.Open(t, "")
	m := graph.NewCheckpointManager(trpcagent.NewSaver(store))
	large := strings.Repeat("x", 1<<20)
	var ids []string
	for i := range 3 {
		c, err := m.CreateCheckpoint(ctx, graph.CreateCheckpointConfig("l", "", "a"), graph.State{"text": large, "i": i}, "loop", i)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	fork, err := m.BranchFrom(ctx, "l", "a", ids[1], "b")
	if err != nil {
		t.Fatal(err)
	}
	m = graph.NewCheckpointManager(trpcagent.NewSaver(adaptertest.Open(t, store.Info().Path)))
	tree, err := m.GetCheckpointTree(ctx, "l")
	if err != nil || len(tree.Branches) != 4 || tree.Branches[fork.Checkpoint.ID].Parent.Checkpoint.Checkpoint.ID != ids[1] {
		t.Fatal(tree, err)
	}
	latest, err := m.Latest(ctx, "l", "b")
	if err != nil || latest.Checkpoint.ID != fork.Checkpoint.ID || latest.Checkpoint.ChannelValues["text"] != large {
		t.Error("the newest checkpoint of the fork is another one", err)
	}
	if old, err := m.Goto(ctx, "l", "b", ids[0]); err != nil || old != nil {
		t.Errorf("the fork has a checkpoint of its parent: %v, %v", old, err)
	}
	err = store.Use(ctx, ctxdir.ContextID("trpc-agent-checkpoint", "l"), func(c *ctxdir.Context) error {
		infos, err := c.Branches(ctx)
		if len(infos) != 3 || infos[2].Parent != "ns:a" || infos[2].Base != 2 || infos[2].Messages != 3 {
			t.Errorf("branches %+v", infos)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := m.DeleteLineage(ctx, "l"); err != nil {
		t.Fatal(err)
	}
	if latest, err := m.Latest(ctx, "l", "a"); err != nil || latest != nil {
		t.Errorf("after the deletion: %v, %v", latest, err)
	}
}

// TestPutAgain: a checkpoint that is put again is replaced, also where a fork inherits it, and so are its writes.
func TestPutAgain(t *testing.T) {
	ctx := t.Context()
	s := trpcagent.NewSaver(adaptertest.Open(t, ""))
	config := graph.CreateCheckpointConfig("l", "", "")
	c := graph.NewCheckpoint(map[string]any{"x": "1"}, nil, nil)
	put := func() map[string]any {
		at, err := s.Put(ctx, graph.PutRequest{Config: config, Checkpoint: c})
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	at := put()
	if _, err := graph.NewCheckpointManager(s).BranchFrom(ctx, "l", "", c.ID, "fork"); err != nil {
		t.Fatal(err)
	}
	c.ChannelValues["x"] = "2"
	put()
	for _, text := range []string{"a", "b"} {
		err := s.PutWrites(ctx, graph.PutWritesRequest{Config: at, Writes: []graph.PendingWrite{{Channel: "x", Value: text}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.List(ctx, config, nil)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if was := all[1]; was.Checkpoint.ChannelValues["x"] != "2" || len(was.PendingWrites) != 1 || was.PendingWrites[0].Value != "b" {
		t.Errorf("%+v", was)
	}
}
