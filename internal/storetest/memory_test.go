package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/loader"
)

// TestMemoryLimit: a call takes no more than its limit, says which messages did not fit, and streaming reads these too.
func TestMemoryLimit(t *testing.T) {
	ctx := context.Background()
	const limit = 10_000
	c, _ := kit.NewContext(t, engine.WithTextThreshold(100), engine.WithMemoryLimit(limit))
	body := func(size int) string { return fmt.Sprintf(`{"role":"user","content":"%s"}`, strings.Repeat("x", size)) }
	sizes := []int{3000, 3000, 9000, 3000, 3000, limit, 40}
	for _, size := range sizes {
		kit.Append(t, c.Active(), engine.Draft{Body: []byte(body(size))})
	}
	messages := kit.Load(t, c.Active())
	bodies, err := loader.Bodies(ctx, messages)
	if !errors.Is(err, engine.ErrMemoryLimit) || !errors.Is(err, engine.ErrTooLarge) {
		t.Error(err)
	}
	for i, size := range sizes {
		want := body(size)
		if i == 2 || i > 3 && i < 6 { // the third message does not fit behind two others
			want = string(messages[i].Stored)
		}
		if string(bodies[i]) != want {
			t.Errorf("body %d of all: %.50s", i, bodies[i])
		}
		one, err := messages[i].Body(ctx)
		if fits := size < limit; (err == nil) != fits || fits && string(one) != body(size) || !fits && !errors.Is(err, engine.ErrMemoryLimit) {
			t.Errorf("body %d: %.50s, %v", i, one, err)
		}
		var streamed strings.Builder
		if err := messages[i].WriteBody(ctx, &streamed); err != nil || streamed.String() != body(size) {
			t.Errorf("body %d streamed: %.50s, %v", i, &streamed, err)
		}
	}
	refs := kit.Must[[]engine.Payload](t)(messages[5].Payloads())
	refs[0].Size = limit + 1
	if _, err := messages[5].Payload(refs[0]); !errors.Is(err, engine.ErrMemoryLimit) {
		t.Error(err)
	}
}

// TestMemoryLimitEscapes: what a text takes with its escapes counts.
func TestMemoryLimitEscapes(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t, engine.WithTextThreshold(100), engine.WithMemoryLimit(10_000))
	body := `{"content":"` + strings.Repeat(`\u0000`, 2000) + `"}`
	kit.Append(t, c.Active(), engine.Draft{Body: []byte(body)})
	m := kit.Load(t, c.Active())[0]
	if b, err := m.Body(ctx); !errors.Is(err, engine.ErrMemoryLimit) || string(b) != string(m.Stored) {
		t.Errorf("%.50s, %v", b, err)
	}
}

// TestMemoryLimitArchived: archived messages count where a call returns several, and an iteration has all of them.
func TestMemoryLimitArchived(t *testing.T) {
	ctx := context.Background()
	c, _ := kit.NewContext(t, engine.WithTextThreshold(-1), engine.WithMemoryLimit(3<<20))
	for i := range 9 {
		kit.Append(t, c.Active(), engine.Draft{Body: fmt.Appendf(nil, `{"n":%d,"content":"%s"}`, i, strings.Repeat("x", 1<<20-500))})
	}
	if n := len(kit.Load(t, c.Active())); n != 9 {
		t.Fatal(n)
	}
	if done := kit.Must[archiving.Result](t)(kit.Archive(ctx, c, archiving.Options{})); done.Messages != 9 {
		t.Fatal(done)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	messages := kit.Load(t, c.Active())
	runtime.ReadMemStats(&after)
	for i, m := range messages {
		if (m.Unavailable == nil) != (i < 3) || i >= 3 && (!errors.Is(m.Unavailable, engine.ErrMemoryLimit) || m.Position != int64(i)) {
			t.Errorf("message %d: %v", i, m.Unavailable)
		}
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 12 {
		t.Errorf("%d MiB allocated", n)
	}
	n := 0
	for m, err := range c.Active().Messages(ctx) {
		if err != nil || m.Unavailable != nil {
			t.Fatal(err, m.Unavailable)
		}
		n++
	}
	if n != 9 {
		t.Errorf("%d messages in an iteration", n)
	}
}
