package a2a_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"
	"github.com/ctxdir/ctxdir"
	adapter "github.com/ctxdir/ctxdir/contrib/a2a"
)

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)

	store, err := ctxdir.Init(dir + "/store")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	tasks := adapter.NewStore(store, nil) // pass it to a2asrv.NewHandler with a2asrv.WithTaskStore

	task := &a2a.Task{ID: "7", Status: a2a.TaskStatus{State: a2a.TaskStateWorking}}
	version, err := tasks.Create(ctx, task)
	if err != nil {
		log.Fatal(err)
	}
	task.Status.State = a2a.TaskStateCompleted
	version, _ = tasks.Update(ctx, &taskstore.UpdateRequest{Task: task, PrevVersion: version})
	stored, _ := tasks.Get(ctx, "7")
	fmt.Println(version, stored.Task.Status.State == a2a.TaskStateCompleted)
	// Output: 2 true
}
