package ctxdir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// news returns the messages that any process appended from a position on.
func news(ctx context.Context, c *ctxdir.Context, seen int64) ([]*ctxdir.Message, error) {
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	b := c.Active()
	n, err := b.Len(ctx)
	if err != nil || n <= seen {
		return nil, err
	}
	return b.Range(ctx, seen, n)
}

func ExampleContext_Refresh() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	other := must(ctxdir.Open(s.Info().Path)) // as another process would
	defer other.Close()
	theirs := must(other.Open(ctx, c.ID()))
	defer theirs.Close()

	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(theirs.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))
	for _, m := range must(news(ctx, c, 1)) {
		fmt.Println(m.Position, string(m.Stored))
	}
	// Output: 1 {"role":"assistant","content":"Left."}
}

// Goroutines share a context and its branches. Appends at the same time share one sync.
func ExampleContext() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	b := c.Active()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := b.Append(ctx, ctxdir.Draft{Body: said("user", fmt.Sprint(i))}); err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
	fmt.Println(b.Len(ctx))
	// Output: 8 <nil>
}

// advice says what to do about an error.
func advice(err error) string {
	var where *ctxdir.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ctxdir.ErrLocked), errors.Is(err, ctxdir.ErrDurability):
		return "retry with the same id"
	case errors.Is(err, ctxdir.ErrPosition):
		return "another writer was faster: refresh, read what is new, decide again"
	case errors.Is(err, ctxdir.ErrConflict):
		return "the id is taken: use another one"
	case errors.Is(err, ctxdir.ErrNotExist):
		return "it was removed: open something else, or look in the trash"
	case errors.Is(err, ctxdir.ErrDamaged):
		return "repair the context"
	case errors.Is(err, ctxdir.ErrFormat):
		return "install a newer version of the program"
	case errors.As(err, &where):
		return "report it: " + where.Op + " failed"
	}
	return "report it"
}

func ExampleError() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	_, err := s.Open(ctx, uuid.New())
	fmt.Println(advice(err))
	_, err = c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Well?")}, ctxdir.WriteOptions{Position: new(int64(7))})
	fmt.Println(advice(err))
	_, err = c.Active().Append(ctx, ctxdir.Draft{Body: []byte("no JSON")})
	fmt.Println(advice(err))

	var where *ctxdir.Error
	fmt.Println(errors.As(err, &where) && where.Context == c.ID(), where.Branch)
	// Output:
	// it was removed: open something else, or look in the trash
	// another writer was faster: refresh, read what is new, decide again
	// report it: append failed
	// true main
}
