package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/erase"
	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// Canary is the text that an erase has to remove from every file.
const Canary = "the-canary-sings"

// Secret is a body that holds the canary, of a size: small, with a payload in the log, or with a payload that is too
// large for it.
func Secret(size int) []byte {
	return fmt.Appendf(nil, `{"role":"user","content":"%s"}`, strings.Repeat(Canary+" ", size/len(Canary)+1))
}

// Erase erases one message, and returns what was removed.
func Erase(s *engine.Store, c, id uuid.UUID, o erase.Options) (done []erase.Removal, err error) {
	for x, xerr := range erase.Messages(context.Background(), s, c, []uuid.UUID{id}, o) {
		if err = xerr; err == nil {
			done = append(done, x)
		}
	}
	return done, err
}

// NewCanaryStore makes a store with messages to erase: one that is replaced and shared by a fork, with payloads, among
// others; one in the log.
func NewCanaryStore(t *testing.T, disk *crashfs.FS) (s *engine.Store, want Transcript) {
	t.Helper()
	ctx := context.Background()
	s, err := Init("disk", engine.WithFS(disk), engine.WithSealBytes(-1), engine.WithTextThreshold(1<<10))
	if err != nil {
		t.Fatal(err)
	}
	c := Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{ID: TestID(60000)}))
	add := func(b *engine.Branch, n int, body string) {
		Append(t, b, engine.Draft{ID: TestID(n), Body: []byte(body)})
	}
	kept := `{"kept":"` + strings.Repeat("kept ", 400) + `"}`
	add(c.Active(), 1, kept)
	add(c.Active(), 2, string(Secret(3000)))
	if err := c.Active().Replace(ctx, TestID(2), engine.Draft{Body: Secret(70_000)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	alt := Must[*engine.Branch](t)(c.Active().Fork(ctx, "alt", 2))
	add(alt, 3, kept)
	add(c.Active(), 4, `{"n":4}`)
	if err := c.Active().Replace(ctx, TestID(2), engine.Draft{Body: Secret(10)}, engine.Shared()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Blobs.Put(Secret(4000)); err != nil { // an edit by hand left it
		t.Fatal(err)
	}
	return s, Transcript{
		"main": {{TestID(1), kept}, {TestID(2), ""}, {TestID(4), `{"n":4}`}},
		"alt":  {{TestID(1), kept}, {TestID(2), ""}, {TestID(3), kept}},
	}
}

// VerifyAllBut reports an error unless the context shows what is wanted, but for one message that is erased, or may be.
func VerifyAllBut(disk *crashfs.FS, want Transcript, but uuid.UUID, erased bool) error {
	s, err := OpenCrash(disk)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	c, err := s.Context(ctx, TestID(60000))
	if err != nil {
		return err
	}
	defer c.Close()
	for name, messages := range want {
		b, err := c.Branch(name)
		if err != nil {
			return err
		}
		got, err := b.Load(ctx)
		if err != nil || len(got) != len(messages) {
			return fmt.Errorf("%s: %d messages, wanted %d, %w", name, len(got), len(messages), err)
		}
		for i, m := range got {
			switch {
			case m.ID != messages[i].ID:
				return fmt.Errorf("%s: position %d has %s", name, i, m.ID)
			case m.ID != but && (m.Unavailable != nil || BodyOf(m) != messages[i].Body):
				return fmt.Errorf("%s: message %d: %w", name, i, m.Unavailable)
			case m.ID == but && (erased || m.Unavailable != nil) && !errors.Is(m.Unavailable, engine.ErrErased):
				return fmt.Errorf("%s: the message is neither there nor erased: %w", name, m.Unavailable)
			case m.ID == but && m.Unavailable == nil && BodyOf(m) != string(Secret(10)):
				return fmt.Errorf("%s: the message is %.40q", name, BodyOf(m))
			}
		}
	}
	return nil
}
