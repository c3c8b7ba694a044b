package listing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// labelled makes a context, and returns its id.
func labelled(t *testing.T, s *engine.Store, m engine.Metadata, labels map[string]string) uuid.UUID {
	t.Helper()
	kit.Check(t, m.Labels.SetTexts(labels))
	c := kit.Must[*engine.Context](t)(s.Create(context.Background(), m))
	kit.Check(t, c.Close())
	return c.ID()
}

// listed returns the titles in a list, and its last cursor.
func listed(t *testing.T, l *listing.Lister, o listing.ListOptions) (titles, cursor string) {
	t.Helper()
	var all []string
	for sum, err := range l.List(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		all, cursor = append(all, sum.Title), sum.Cursor
	}
	return strings.Join(all, " "), cursor
}

// TestListConditions lists with each condition, before and after the contexts are in the cache.
func TestListConditions(t *testing.T) {
	s, dir := kit.NewStore(t)
	l := listing.New(s)
	var model ctxfolder.Object
	model.SetText("model_id", "small")
	at := time.Now()
	ids := []uuid.UUID{
		labelled(t, s, engine.Metadata{Title: "a/one"}, map[string]string{"user": "ada", "tool": "x"}),
		labelled(t, s, engine.Metadata{Title: "Two", Config: model}, map[string]string{"user": "ada", "team": ""}),
		labelled(t, s, engine.Metadata{Title: "three", Kind: "memory", Config: model}, map[string]string{"user": "eve"}),
	}
	old(t, dir, ids...)
	for range 2 {
		for _, x := range []struct {
			o    listing.ListOptions
			want string
		}{
			{listing.ListOptions{}, "Two a/one"},
			{listing.ListOptions{Kind: "*"}, "three Two a/one"},
			{listing.ListOptions{Kind: "memory"}, "three"},
			{listing.ListOptions{Kind: "mem"}, ""},
			{listing.ListOptions{Labels: map[string]string{"user": "ada"}}, "Two a/one"},
			{listing.ListOptions{Labels: map[string]string{"user": "ada", "team": ""}}, "Two"},
			{listing.ListOptions{Kind: "*", Labels: map[string]string{"user": "eve"}}, "three"},
			{listing.ListOptions{Labels: map[string]string{"none": ""}}, ""},
			{listing.ListOptions{Tool: "x"}, "a/one"},
			{listing.ListOptions{Model: "small"}, "Two"},
			{listing.ListOptions{Title: "*O*"}, "Two a/one"},
			{listing.ListOptions{Title: "A*E"}, "a/one"},
			{listing.ListOptions{Title: "?wo"}, "Two"},
			{listing.ListOptions{Title: "one"}, ""},
			{listing.ListOptions{Kind: "*", Order: listing.OrderTitle}, "a/one three Two"},
			{listing.ListOptions{Kind: "*", Order: listing.OrderTitle, Reverse: true, Limit: 2}, "Two three"},
			{listing.ListOptions{Kind: "*", Order: listing.OrderCreated, Reverse: true}, "a/one Two three"},
			{listing.ListOptions{Since: at.Add(-time.Minute), Until: at.Add(time.Minute)}, "Two a/one"},
			{listing.ListOptions{Since: at.Add(time.Minute)}, ""},
			{listing.ListOptions{Until: at.Add(-time.Minute)}, ""},
		} {
			if got, _ := listed(t, l, x.o); got != x.want {
				t.Errorf("%+v: %q, want %q", x.o, got, x.want)
			}
		}
	}
	if forgotten := l.Forgotten(ids); len(forgotten) > 0 {
		t.Errorf("%v are not in the cache", forgotten)
	}
	_, cursor := listed(t, l, listing.ListOptions{Limit: 1})
	for _, bad := range []listing.ListOptions{
		{Order: "colour"}, {Title: "["}, {Limit: -1}, {Cursor: "x"}, {Cursor: "!"}, {Cursor: cursor, Order: listing.OrderSize},
	} {
		for sum, err := range l.List(context.Background(), bad) {
			if !errors.Is(err, engine.ErrInvalid) {
				t.Errorf("%+v: %+v, %v", bad, sum, err)
			}
		}
	}
}

// TestListInPages reads a list page by page while contexts come and go between the pages: whatever stays is listed
// once, in order.
func TestListInPages(t *testing.T) {
	for _, order := range []string{listing.OrderUpdated, listing.OrderCreated, listing.OrderSize, listing.OrderTitle} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", order, reverse), func(t *testing.T) {
				s, _ := kit.NewStore(t)
				l := listing.New(s)
				var ids []uuid.UUID
				for i := range 9 {
					title := strings.Repeat("Title ÄÖ", 40*(i%3)) + string(rune('a'+i%4))
					ids = append(ids, labelled(t, s, engine.Metadata{Title: title}, nil))
				}
				o := listing.ListOptions{Order: order, Reverse: reverse}
				var want, got []uuid.UUID
				for sum, err := range l.List(t.Context(), o) {
					kit.Check(t, err)
					want = append(want, sum.ID)
				}
				o.Limit = 2
				for page := 0; ; page++ {
					n := len(got)
					for sum, err := range l.List(t.Context(), o) {
						kit.Check(t, err)
						o.Cursor = sum.Cursor
						if slices.Contains(ids, sum.ID) {
							got = append(got, sum.ID)
						}
					}
					if page < 3 {
						labelled(t, s, engine.Metadata{Title: "Title ÄÖ" + string(rune('a'+page))}, nil)
						kit.Must[engine.TrashItem](t)(s.Delete(t.Context(), want[n]))
					} else if n == len(got) && page > 8 {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("pages show %v, want %v", got, want)
				}
			})
		}
	}
}
