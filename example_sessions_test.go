package ctxdir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
)

// respond appends to the session of a framework, and makes the session on its first message.
func respond(ctx context.Context, s *ctxdir.Store, session, user string, body json.RawMessage) error {
	c, err := s.OpenOrCreate(ctx, ctxdir.Metadata{ExternalID: session, Labels: map[string]string{"user": user}})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Active().Append(ctx, ctxdir.Draft{Body: body})
	return err
}

func ExampleStore_OpenOrCreate() {
	ctx := context.Background()
	s, _, done := temporary("A walk")
	defer done()
	check(respond(ctx, s, "session/7", "ada", said("user", "Which way?")))
	check(respond(ctx, s, "session/7", "ada", said("user", "And then?")))

	c := must(s.OpenOrCreate(ctx, ctxdir.Metadata{ExternalID: "session/7"}))
	defer c.Close()
	fmt.Println(must(c.Active().Len(ctx)), c.ID() == must(s.Resolve("session/7")))
	// Output: 2 true
}

// sessions returns a page of a user's conversations, most recently changed first, and the cursor of the next page.
func sessions(ctx context.Context, s *ctxdir.Store, user, cursor string) (titles []string, next string, err error) {
	o := ctxdir.ListOptions{Labels: map[string]string{"user": user}, Limit: 50, Cursor: cursor}
	for sum, err := range s.List(ctx, o) {
		if err != nil {
			return nil, "", err
		}
		titles, next = append(titles, sum.Title), sum.Cursor
	}
	return titles, next, nil
}

func ExampleListOptions() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	check(c.Update(ctx, func(m *ctxdir.Metadata) error {
		m.Labels = map[string]string{"user": "ada"}
		return nil
	}))
	titles, next, err := sessions(ctx, s, "ada", "")
	fmt.Println(titles, err)
	titles, _, err = sessions(ctx, s, "ada", next)
	fmt.Println(titles, err)
	// Output:
	// [A walk] <nil>
	// [] <nil>
}

// since returns the messages of a branch from a time on.
func since(ctx context.Context, b *ctxdir.Branch, t time.Time) ([]*ctxdir.Message, error) {
	from, err := b.PositionAt(ctx, t)
	if err != nil {
		return nil, err
	}
	return b.Range(ctx, from, ctxdir.End)
}

func ExampleBranch_PositionAt() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for hour := range 4 {
		must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?"), CreatedAt: noon.Add(time.Duration(hour) * time.Hour)}))
	}
	found := must(since(ctx, c.Active(), noon.Add(90*time.Minute)))
	fmt.Println(len(found), found[0].Position)
	// Output: 2 2
}

// split makes a new conversation of the first n messages of a branch.
func split(ctx context.Context, b *ctxdir.Branch, n int64, title string) (*ctxdir.Context, error) {
	return b.Copy(ctx, n, ctxdir.Metadata{Title: title})
}

func ExampleBranch_Copy() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("assistant", "Left.")}))

	other := must(split(ctx, c.Active(), 1, "Another walk"))
	defer other.Close()
	fmt.Println(other.Metadata().Title, must(other.Active().Len(ctx)), other.Metadata().ParentID == c.ID())
	// Output: Another walk 1 true
}

func ExampleStore_Use() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()

	for range 2 { // the second call finds the context open
		check(s.Use(ctx, c.ID(), func(c *ctxdir.Context) error {
			_, err := c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")})
			return err
		}))
	}
	check(c.Refresh(ctx))
	fmt.Println(must(c.Active().Len(ctx)))
	// Output: 2
}
