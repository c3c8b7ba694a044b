package a2a_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"
	"github.com/ctxdir/ctxdir"
	adapter "github.com/ctxdir/ctxdir/contrib/a2a"
	"github.com/ctxdir/ctxdir/internal/adaptertest"
)

const each = 20 // updates of each process

func ada(context.Context) (string, error) { return "ada", nil }

// child is what the processes of the tests do: each update expects the version that it read, and tries again.
func child(store *ctxdir.Store, number int) error {
	s, ctx := adapter.NewStore(store, ada), context.Background()
	for i := 0; i < each; {
		was, err := s.Get(ctx, "t")
		if err != nil {
			return err
		}
		was.Task.History = append(was.Task.History, &a2a.Message{ID: fmt.Sprintf("%d.%d", number, i)})
		_, err = s.Update(ctx, &taskstore.UpdateRequest{Task: was.Task, PrevVersion: was.Version})
		if errors.Is(err, taskstore.ErrConcurrentModification) {
			continue
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

func TestMain(m *testing.M) { adaptertest.Main(m, child) }

func create(t *testing.T, s *adapter.Store, task *a2a.Task) {
	t.Helper()
	if v, err := s.Create(t.Context(), task); v != 1 || err != nil {
		t.Fatalf("version %d, %v", v, err)
	}
}

// TestProcesses: no update of two processes on one task is lost.
func TestProcesses(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := adapter.NewStore(store, ada)
	create(t, s, &a2a.Task{ID: "t"})
	adaptertest.Processes(t, store, 2)
	got, err := s.Get(t.Context(), "t")
	if err != nil || got.Version != 2*each+1 || len(got.Task.History) != 2*each {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRestart: another store on the folder shows a large task, lists it by its newest state, and continues its versions.
func TestRestart(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := adapter.NewStore(store, ada)
	task := &a2a.Task{ID: "t/1", ContextID: "c", Status: a2a.TaskStatus{State: a2a.TaskStateWorking}}
	create(t, s, task)
	large := strings.Repeat("large <&>", 1<<20)
	task.Artifacts = []*a2a.Artifact{{ID: "a", Parts: a2a.ContentParts{a2a.NewTextPart(large)}}}
	task.Status.State = a2a.TaskStateCompleted
	if _, err := s.Update(t.Context(), &taskstore.UpdateRequest{Task: task, PrevVersion: 1}); err != nil {
		t.Fatal(err)
	}
	s = adapter.NewStore(adaptertest.Open(t, store.Info().Path), ada)
	for state, want := range map[a2a.TaskState]int{a2a.TaskStateWorking: 0, a2a.TaskStateCompleted: 1} {
		got, err := s.List(t.Context(), &a2a.ListTasksRequest{ContextID: "c", Status: state, IncludeArtifacts: true})
		if err != nil || got.TotalSize != want || len(got.Tasks) != want {
			t.Fatalf("state %s: %+v, %v", state, got, err)
		}
		if want == 1 && got.Tasks[0].Artifacts[0].Parts[0].Text() != large {
			t.Error("the artifact differs")
		}
	}
	_, err := s.Update(t.Context(), &taskstore.UpdateRequest{Task: task, PrevVersion: 1})
	if !errors.Is(err, taskstore.ErrConcurrentModification) {
		t.Errorf("stale update: %v", err)
	}
	if v, err := s.Update(t.Context(), &taskstore.UpdateRequest{Task: task, PrevVersion: 2}); v != 3 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
}

// TestCreateAgain: a task is created once, also by a retry; after its removal behind another handle it is not found, and
// may be created anew.
func TestCreateAgain(t *testing.T) {
	store := adaptertest.Open(t, "")
	s := adapter.NewStore(store, nil)
	create(t, s, &a2a.Task{ID: "t"})
	if _, err := s.Create(t.Context(), &a2a.Task{ID: "t"}); !errors.Is(err, taskstore.ErrTaskAlreadyExists) {
		t.Errorf("created again: %v", err)
	}
	other := adaptertest.Open(t, store.Info().Path)
	if _, err := other.Remove(t.Context(), ctxdir.ContextID(adapter.Kind, "t")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), &taskstore.UpdateRequest{Task: &a2a.Task{ID: "t"}}); !errors.Is(err, a2a.ErrTaskNotFound) {
		t.Errorf("updated a removed task: %v", err)
	}
	create(t, adapter.NewStore(other, nil), &a2a.Task{ID: "t"})
	if got, err := s.Get(t.Context(), "t"); err != nil || got.Version != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
