package ctxdir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// tidy does what a program does once in a while: old messages are compressed, and what no branch shows goes to the trash, from where
// it can be brought back for as long as the grace period.
func tidy(ctx context.Context, s *ctxdir.Store) error {
	for id, err := range s.IDs() {
		if err != nil {
			return err
		}
		c, err := s.Context(ctx, id)
		if err != nil {
			log.Printf("context %s: %v", id, err) // one that is damaged keeps nobody from the others
			continue
		}
		_, err = c.Archive(ctx, ctxdir.ArchiveOptions{OlderThan: ctxdir.DefaultArchiveAge})
		if err := errors.Join(err, c.Close()); err != nil {
			return err
		}
	}
	for _, err := range s.Collect(ctx, ctxdir.Collecting{Grace: ctxdir.DefaultGrace}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func ExampleStore_Collect() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))
	check(c.Active().Rewind(ctx, 1))
	check(tidy(ctx, s))
	for t, err := range s.Trash(ctx, c.ID()) {
		fmt.Println(t.Kind, t.Name, err)
	}
	// Output: line main <nil>
}

func ExampleContext_Archive() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	for i := range 100 {
		must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", fmt.Sprintf("Step %d of the walk along the quay.", i))}))
	}
	did := must(c.Archive(ctx, ctxdir.ArchiveOptions{}))
	fmt.Println(did.Messages, did.After < did.Before)
	fmt.Println(string(must(c.Active().Last(ctx, 1))[0].Stored))
	back := must(c.Unarchive(ctx, nil))
	fmt.Println(back.Messages)
	// Output:
	// 100 true
	// {"role":"user","content":"Step 99 of the walk along the quay."}
	// 100
}

// bin removes a context, so that it can be brought back.
func bin(ctx context.Context, s *ctxdir.Store, id uuid.UUID) (item uuid.UUID, err error) {
	t, err := s.Delete(ctx, id)
	return t.Item, err
}

func ExampleStore_Restore() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	item := must(bin(ctx, s, c.ID()))
	_, err := s.Context(ctx, c.ID())
	fmt.Println(errors.Is(err, ctxdir.ErrNotExist))

	back := must(s.Restore(ctx, item))
	fmt.Println(back.Kind, back.Context == c.ID())
	// Output:
	// true
	// context true
}

// forget removes messages for good, whichever branches show them.
func forget(ctx context.Context, s *ctxdir.Store, id uuid.UUID, messages ...uuid.UUID) error {
	for _, err := range s.Erase(ctx, id, messages, ctxdir.EraseOptions{Shared: true}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func ExampleStore_Erase() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	at := must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "My password is swordfish.")}))
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Do not tell me.")}))
	check(forget(ctx, s, c.ID(), at.ID))
	check(c.Refresh(ctx))
	for _, m := range must(c.Active().Load(ctx)) {
		fmt.Println(m.Position, errors.Is(m.Unavailable, ctxdir.ErrErased))
	}
	// Output:
	// 0 true
	// 1 false
}

func ExampleStore_Backup() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	dir := must(os.MkdirTemp("", "backup-"))
	defer os.RemoveAll(dir)

	to := must(s.BackupStore(dir))
	defer to.Close()
	copied := must(s.Backup(ctx, c.ID(), to))
	fmt.Println(copied.Messages, copied.Missing)

	same := must(to.Context(ctx, c.ID()))
	defer same.Close()
	list(same.Active())
	// Output:
	// 1 0
	// 0 {"role":"user","content":"Which way?"}
}
