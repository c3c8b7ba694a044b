package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// TestWriteToArchived: a message was archived by another process since the handle looked, and an append of a third one
// in between left the journal that the handle knows in place. To replace the message finds it, and to append it once
// more finds that it is there.
func TestWriteToArchived(t *testing.T) {
	ctx := context.Background()
	c, _ := newContext(t, WithFoldBytes(-1))
	for i := range 3 {
		must[Appended](t)(c.Active().Append(ctx, Draft{ID: testID(i + 1), Body: fmt.Appendf(nil, `{"n":%d}`, i+1)}))
	}
	check(t, c.Fold(ctx))
	check(t, c.log.Exclusively(ctx, c.log.Retire))
	others := must[*Store](t)(Open(c.store.Path(), WithFoldBytes(-1)))
	defer others.Close()
	theirs := must[*Context](t)(others.Context(ctx, c.ID()))
	defer theirs.Close()
	ours := must[*Context](t)(c.store.Context(ctx, c.ID()))
	defer ours.Close()
	must[[]*Message](t)(ours.Active().Load(ctx))
	var once sync.Once
	var err error
	must[Archived](t)(theirs.Archive(ctx, ArchiveOptions{Progress: func(int64, int64) {
		once.Do(func() { _, err = c.Active().Append(ctx, Draft{ID: testID(9), Body: []byte(`{"n":9}`)}) })
	}}))
	check(t, err)
	at, err := ours.Active().Append(ctx, Draft{ID: testID(1), Body: []byte(`{"n":1}`)})
	if err != nil || !at.Existed || at.Position != 0 {
		t.Errorf("appended again: %+v, %v", at, err)
	}
	check(t, ours.Active().Replace(ctx, testID(2), Draft{Body: []byte(`{"n":22}`)}))
	check(t, theirs.Refresh(ctx))
	for i, want := range []string{`{"n":1}`, `{"n":22}`, `{"n":3}`, `{"n":9}`} {
		m := must[[]*Message](t)(theirs.Active().Range(ctx, int64(i), int64(i+1)))
		if got := bodyOf(m[0]); got != want {
			t.Errorf("position %d: %s", i, got)
		}
	}
}
