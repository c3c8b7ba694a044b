package storetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestResolveParts: a beginning of the id, its end, and a beginning of its last group each name a context, and an item
// of the trash.
func TestResolveParts(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	ids := []uuid.UUID{
		uuid.MustParse("0195f0a0-1111-7000-8000-7f3a91b2c4d5"),
		uuid.MustParse("0195f0a0-2222-7000-8000-7f3b00000001"),
		uuid.MustParse("7f3b1234-3333-7000-8000-00000000c4d6"),
	}
	for _, id := range ids {
		c, err := s.Create(ctx, engine.Metadata{ID: id})
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string][]int{
		"7f3a": {0}, "7F3A9": {0}, "7f3a91b2c4d5": {0}, "0195f0a0-1": {0}, "4d5": {0}, "8000-7f3a91b2c4d5": {0},
		"7f3b0": {1}, "7f3b1": {2}, "00000000c": {2},
		"7f": {0, 1, 2}, "7f3b": {1, 2}, "0195": {0, 1},
		"1111": nil, "f3a9": nil, "8000-7f3a": nil,
	}
	check := func(of string, ids []uuid.UUID, resolve func(string) (uuid.UUID, error)) {
		t.Helper()
		for part, want := range tests {
			id, err := resolve(part)
			var several *engine.Error
			switch {
			case len(want) == 1 && (err != nil || id != ids[want[0]]):
				t.Errorf("%s %s: %s, %v", of, part, id, err)
			case len(want) == 0 && !errors.Is(err, engine.ErrNotExist):
				t.Errorf("%s %s: %s, %v", of, part, id, err)
			case len(want) > 1 && (!errors.As(err, &several) || len(several.Matches) != len(want)):
				t.Errorf("%s %s: %s, %v", of, part, id, err)
			}
			for _, i := range want {
				if several != nil && !slices.Contains(several.Matches, ids[i]) {
					t.Errorf("%s %s: %v lacks %s", of, part, several.Matches, ids[i])
				}
			}
		}
	}
	check("context", ids, listing.New(s).Resolve)

	for _, id := range ids {
		removed := kit.Must[engine.TrashItem](t)(s.Delete(ctx, id))
		from, to := trash.Path(uuid.Nil)+"/"+removed.Item.String(), trash.Path(uuid.Nil)+"/"+id.String()
		if err := s.FS.Rename(from, to); err != nil { // the item has an id with the same parts
			t.Fatal(err)
		}
	}
	check("item", ids, func(ref string) (uuid.UUID, error) { return trash.ResolveItem(ctx, s, ref) })
}

// TestResolveItemByFormerName: the beginning of a removed context's id names its item, although the id of another item
// begins like it.
func TestResolveItemByFormerName(t *testing.T) {
	ctx := context.Background()
	s, _ := kit.NewStore(t)
	var items []uuid.UUID
	ids := []uuid.UUID{uuid.MustParse("0195f0a0-1111-7000-8000-000000000001"), uuid.MustParse("7f3b1234-3333-7000-8000-00000000c4d6")}
	for _, id := range ids {
		c, err := s.Create(ctx, engine.Metadata{ID: id})
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, kit.Must[engine.TrashItem](t)(s.Delete(ctx, id)).Item)
	}
	other := uuid.MustParse("0195f0a0-9999-7000-8000-000000000002")
	if err := s.FS.Rename(trash.Path(uuid.Nil)+"/"+items[1].String(), trash.Path(uuid.Nil)+"/"+other.String()); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]uuid.UUID{
		"0195f0a0": items[0], "0195f0a0-9": other, "7f3b": other, other.String(): other, items[0].String(): items[0],
		ids[0].String(): items[0],
	} {
		if id, err := trash.ResolveItem(ctx, s, ref); err != nil || id != want {
			t.Errorf("%s: %s, %v; want %s", ref, id, err, want)
		}
	}
}
