package engine_test

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
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
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
func listed(t *testing.T, s *engine.Store, o engine.ListOptions) (titles, cursor string) {
	t.Helper()
	var all []string
	for sum, err := range s.List(context.Background(), o) {
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
			o    engine.ListOptions
			want string
		}{
			{engine.ListOptions{}, "Two a/one"},
			{engine.ListOptions{Kind: "*"}, "three Two a/one"},
			{engine.ListOptions{Kind: "memory"}, "three"},
			{engine.ListOptions{Kind: "mem"}, ""},
			{engine.ListOptions{Labels: map[string]string{"user": "ada"}}, "Two a/one"},
			{engine.ListOptions{Labels: map[string]string{"user": "ada", "team": ""}}, "Two"},
			{engine.ListOptions{Kind: "*", Labels: map[string]string{"user": "eve"}}, "three"},
			{engine.ListOptions{Labels: map[string]string{"none": ""}}, ""},
			{engine.ListOptions{Tool: "x"}, "a/one"},
			{engine.ListOptions{Model: "small"}, "Two"},
			{engine.ListOptions{Title: "*O*"}, "Two a/one"},
			{engine.ListOptions{Title: "A*E"}, "a/one"},
			{engine.ListOptions{Title: "?wo"}, "Two"},
			{engine.ListOptions{Title: "one"}, ""},
			{engine.ListOptions{Kind: "*", Order: engine.OrderTitle}, "a/one three Two"},
			{engine.ListOptions{Kind: "*", Order: engine.OrderTitle, Reverse: true, Limit: 2}, "Two three"},
			{engine.ListOptions{Kind: "*", Order: engine.OrderCreated, Reverse: true}, "a/one Two three"},
			{engine.ListOptions{Since: at.Add(-time.Minute), Until: at.Add(time.Minute)}, "Two a/one"},
			{engine.ListOptions{Since: at.Add(time.Minute)}, ""},
			{engine.ListOptions{Until: at.Add(-time.Minute)}, ""},
		} {
			if got, _ := listed(t, s, x.o); got != x.want {
				t.Errorf("%+v: %q, want %q", x.o, got, x.want)
			}
		}
	}
	if forgotten := s.Forgotten(ids); len(forgotten) > 0 {
		t.Errorf("%v are not in the cache", forgotten)
	}
	_, cursor := listed(t, s, engine.ListOptions{Limit: 1})
	for _, bad := range []engine.ListOptions{
		{Order: "colour"}, {Title: "["}, {Limit: -1}, {Cursor: "x"}, {Cursor: "!"}, {Cursor: cursor, Order: engine.OrderSize},
	} {
		for sum, err := range s.List(context.Background(), bad) {
			if !errors.Is(err, engine.ErrInvalid) {
				t.Errorf("%+v: %+v, %v", bad, sum, err)
			}
		}
	}
}

// TestListInPages reads a list page by page while contexts come and go between the pages: whatever stays is listed
// once, in order.
func TestListInPages(t *testing.T) {
	for _, order := range []string{engine.OrderUpdated, engine.OrderCreated, engine.OrderSize, engine.OrderTitle} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", order, reverse), func(t *testing.T) {
				s, _ := kit.NewStore(t)
				var ids []uuid.UUID
				for i := range 9 {
					title := strings.Repeat("Title ÄÖ", 40*(i%3)) + string(rune('a'+i%4))
					ids = append(ids, labelled(t, s, engine.Metadata{Title: title}, nil))
				}
				o := engine.ListOptions{Order: order, Reverse: reverse}
				var want, got []uuid.UUID
				for sum, err := range s.List(t.Context(), o) {
					kit.Check(t, err)
					want = append(want, sum.ID)
				}
				o.Limit = 2
				for page := 0; ; page++ {
					n := len(got)
					for sum, err := range s.List(t.Context(), o) {
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

// TestContextsInOrder: what goes through the whole store does so in the order of ids, whatever the file system's is.
func TestContextsInOrder(t *testing.T) {
	disk := crashfs.New()
	s := kit.Must[*engine.Store](t)(kit.Init("disk", engine.WithFS(disk)))
	defer s.Close()
	for range 30 {
		c := kit.Must[*engine.Context](t)(s.Create(context.Background(), engine.Metadata{ID: uuid.New()}))
		kit.Check(t, c.Close())
	}
	var ids, checked []string
	for id, err := range s.IDs() {
		kit.Check(t, err)
		ids = append(ids, id.String())
	}
	report := func(p engine.CheckProgress) { checked = append(checked, p.Context.String()) }
	for f, err := range s.Check(context.Background(), nil, engine.CheckOptions{Progress: report}) {
		t.Error(f, err)
	}
	if len(ids) != 30 || !slices.IsSorted(ids) {
		t.Errorf("%d ids: %v", len(ids), ids)
	}
	if checked = slices.Compact(checked); len(checked) != 30 || !slices.IsSorted(checked) {
		t.Errorf("%d contexts checked: %v", len(checked), checked)
	}
}
