package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"
	"github.com/ctxdir/ctxdir"
)

var _ taskstore.Store = (*Store)(nil)

// Kind is the kind of the contexts that hold tasks. The external id is that of the task.
const Kind = "a2a-task"

// Store keeps tasks in a store. Several processes may use it.
type Store struct {
	store *ctxdir.Store
	user  taskstore.Authenticator
}

// NewStore returns a store that keeps its tasks in store. user names the user of a call: it is the owner of the tasks
// that it creates, and lists no others. Without user, no task can be listed. The caller closes store.
func NewStore(store *ctxdir.Store, user taskstore.Authenticator) *Store {
	if user == nil {
		user = func(context.Context) (string, error) { return "", nil }
	}
	return &Store{store, user}
}

// Create stores the first state of a task.
func (s *Store) Create(ctx context.Context, task *a2a.Task) (taskstore.TaskVersion, error) {
	user, err := s.user(ctx)
	if err != nil {
		return taskstore.TaskVersionMissing, fmt.Errorf("authenticate: %w", err)
	}
	var version taskstore.TaskVersion
	m := ctxdir.Metadata{Kind: Kind, ExternalID: string(task.ID), Labels: map[string]string{"tool": "a2a", "user": user}}
	err = s.store.UseOrCreate(ctx, m, func(c *ctxdir.Context) (err error) {
		version, err = put(ctx, c, task, func(was taskstore.TaskVersion) error {
			if was != taskstore.TaskVersionMissing {
				return taskstore.ErrTaskAlreadyExists
			}
			return nil
		})
		return err
	})
	return version, err
}

// Update stores the next state of a task. It fails with [taskstore.ErrConcurrentModification] unless the current version
// is the one that the request expects.
func (s *Store) Update(ctx context.Context, r *taskstore.UpdateRequest) (version taskstore.TaskVersion, err error) {
	err = s.use(ctx, r.Task.ID, func(c *ctxdir.Context) (err error) {
		version, err = put(ctx, c, r.Task, func(was taskstore.TaskVersion) error {
			if was == taskstore.TaskVersionMissing {
				return a2a.ErrTaskNotFound
			}
			if r.PrevVersion != taskstore.TaskVersionMissing && r.PrevVersion != was {
				return taskstore.ErrConcurrentModification
			}
			return nil
		})
		return err
	})
	return version, err
}

// put appends a state of a task, with the labels by which List finds it, if check allows it on the current version.
func put(ctx context.Context, c *ctxdir.Context, task *a2a.Task, check func(taskstore.TaskVersion) error) (taskstore.TaskVersion, error) {
	body, err := json.Marshal(task)
	if err != nil {
		return taskstore.TaskVersionMissing, err
	}
	var version taskstore.TaskVersion
	_, err = c.Commit(ctx, func(tx *ctxdir.Tx) error {
		m := tx.Metadata()
		n, err := tx.Len(m.ActiveBranch)
		if err != nil {
			return err
		}
		if err := check(taskstore.TaskVersion(n)); err != nil {
			return err
		}
		version = taskstore.TaskVersion(n + 1)
		if err := tx.Append(m.ActiveBranch, ctxdir.Draft{Type: "task", Body: body}); err != nil {
			return err
		}
		labels := labelsOf(m.Labels, task)
		if maps.Equal(labels, m.Labels) {
			return nil
		}
		return tx.Update(func(m *ctxdir.Metadata) error {
			m.Labels = labels
			return nil
		})
	})
	return version, err
}

func labelsOf(was map[string]string, task *a2a.Task) map[string]string {
	labels := map[string]string{"tool": was["tool"], "user": was["user"], "context": task.ContextID, "state": string(task.Status.State)}
	if at := task.Status.Timestamp; at != nil {
		labels["state_time"] = at.Format(time.RFC3339Nano)
	}
	return labels
}

// Get returns the newest state of a task.
func (s *Store) Get(ctx context.Context, id a2a.TaskID) (*taskstore.StoredTask, error) {
	var stored *taskstore.StoredTask
	err := s.use(ctx, id, func(c *ctxdir.Context) error {
		last, err := c.Active().Last(ctx, 1)
		if err != nil {
			return err
		}
		if len(last) == 0 {
			return a2a.ErrTaskNotFound
		}
		body, err := last[0].Body(ctx)
		if err != nil {
			return err
		}
		stored = &taskstore.StoredTask{Version: taskstore.TaskVersion(last[0].Position + 1)}
		return json.Unmarshal(body, &stored.Task)
	})
	return stored, err
}

func (s *Store) use(ctx context.Context, id a2a.TaskID, f func(*ctxdir.Context) error) error {
	err := s.store.Use(ctx, ctxdir.ContextID(Kind, string(id)), f)
	if errors.Is(err, ctxdir.ErrNotExist) {
		return a2a.ErrTaskNotFound
	}
	return err
}

// List returns a page of the user's tasks, the most recently changed first. It reads only the tasks of the page.
func (s *Store) List(ctx context.Context, r *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	user, err := s.user(ctx)
	if user == "" || err != nil {
		return nil, a2a.ErrUnauthenticated
	}
	response := &a2a.ListTasksResponse{PageSize: r.PageSize}
	if r.PageSize == 0 {
		response.PageSize = 50
	} else if r.PageSize < 1 || r.PageSize > 100 {
		return nil, fmt.Errorf("page size must be between 1 and 100 inclusive, got %d: %w", r.PageSize, a2a.ErrInvalidRequest)
	}
	for _, err := range s.rows(ctx, user, r, "") {
		if err != nil {
			return nil, err
		}
		response.TotalSize++
	}
	cursor := ""
	for row, err := range s.rows(ctx, user, r, r.PageToken) {
		if errors.Is(err, ctxdir.ErrInvalid) {
			return nil, a2a.ErrParseError
		}
		if err != nil {
			return nil, err
		}
		if len(response.Tasks) == response.PageSize {
			response.NextPageToken = cursor
			break
		}
		stored, err := s.Get(ctx, a2a.TaskID(row.ExternalID))
		if errors.Is(err, a2a.ErrTaskNotFound) {
			continue // another process removed it meanwhile
		}
		if err != nil {
			return nil, err
		}
		cursor, response.Tasks = row.Cursor, append(response.Tasks, shorten(stored.Task, r))
	}
	return response, nil
}

// rows yields the tasks that a request asks for, from a cursor on. It opens none of them.
func (s *Store) rows(ctx context.Context, user string, r *a2a.ListTasksRequest, cursor string) iter.Seq2[ctxdir.Summary, error] {
	o := ctxdir.ListOptions{Kind: Kind, Labels: map[string]string{"user": user}, Cursor: cursor}
	if r.ContextID != "" {
		o.Labels["context"] = r.ContextID
	}
	if r.Status != a2a.TaskStateUnspecified {
		o.Labels["state"] = string(r.Status)
	}
	return func(yield func(ctxdir.Summary, error) bool) {
		for row, err := range s.store.List(ctx, o) {
			at, none := time.Parse(time.RFC3339Nano, row.Labels["state_time"])
			early := r.StatusTimestampAfter != nil && none == nil && at.Before(*r.StatusTimestampAfter)
			if !early && !yield(row, err) {
				return
			}
		}
	}
}

// shorten leaves out what a request does not ask for.
func shorten(task *a2a.Task, r *a2a.ListTasksRequest) *a2a.Task {
	n := 100
	if r.HistoryLength != nil {
		n = *r.HistoryLength
	}
	switch {
	case n == 0:
		task.History = []*a2a.Message{}
	case n > 0 && len(task.History) > n:
		task.History = task.History[len(task.History)-n:]
	}
	if !r.IncludeArtifacts {
		task.Artifacts = nil
	}
	return task
}
