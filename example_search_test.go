package ctxdir_test

import (
	"context"
	"fmt"
	"os"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
)

// hits returns what a search finds in all messages that were appended before the call.
func hits(ctx context.Context, x *search.Index, q search.Query) (all []search.Hit, err error) {
	if _, err := x.Update(ctx, search.UpdateOptions{}); err != nil {
		return nil, err
	}
	for hit, err := range x.Search(ctx, q) {
		if err != nil {
			return nil, err
		}
		all = append(all, hit)
	}
	return all, nil
}

// An open index has what its last update found.
func ExampleStore_search() {
	dir := must(os.MkdirTemp("", "store"))
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s := must(ctxdir.Init(dir))
	defer s.Close()
	c := must(s.Create(ctx, ctxdir.Metadata{}))
	defer c.Close()
	x := must(search.Open(ctx, s))
	defer x.Close()
	q := search.Query{Text: "heron"}
	for _, text := range []string{"The staging database is called heron.", "Is heron a bird?"} {
		must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", text)}))
		stale := 0
		for _, err := range x.Search(ctx, q) {
			if err != nil {
				panic(err)
			}
			stale++
		}
		fmt.Println(stale, "before the update,", len(must(hits(ctx, x, q))), "after it")
	}
	// Output:
	// 0 before the update, 1 after it
	// 1 before the update, 2 after it
}
