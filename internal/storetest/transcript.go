package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
)

// ErasedBody stands for the body of a message that is erased.
const ErasedBody = "erased"

// Close closes context and store.
func (w *World) Close() error { return errors.Join(w.C.Close(), w.Store.Close()) }

// ReadEveryWay reads every branch, in full, piece by piece and by id, and makes sure that all say the same.
func ReadEveryWay(c *engine.Context) (Transcript, error) {
	ctx := context.Background()
	got := Transcript{}
	for _, info := range c.Metadata().Branches {
		b, err := c.Branch(info.Name)
		if err != nil {
			return nil, err
		}
		all, err := b.Load(ctx)
		if err != nil {
			return nil, err
		}
		got[info.Name] = nil
		for i, m := range all {
			body, err := shown(m, i)
			if err != nil {
				return nil, fmt.Errorf("branch %q: %w", info.Name, err)
			}
			got[info.Name] = append(got[info.Name], TranscriptMessage{m.ID, body})
			one, err := b.Range(ctx, int64(i), int64(i)+1)
			if err == nil && len(one) == 1 && body != ErasedBody {
				one[0], err = b.Message(ctx, m.ID)
			}
			if err != nil || len(one) != 1 {
				return nil, fmt.Errorf("branch %q, position %d alone: %d messages, %w", info.Name, i, len(one), err)
			}
			if again, err := shown(one[0], i); err != nil || again != body || one[0].ID != m.ID {
				return nil, fmt.Errorf("branch %q, position %d alone: another body, %w", info.Name, i, err)
			}
		}
	}
	return got, nil
}

func shown(m *engine.Message, at int) (string, error) {
	if errors.Is(m.Unavailable, engine.ErrErased) {
		return ErasedBody, nil
	}
	if m.Unavailable != nil || m.Edited || m.Position != int64(at) {
		return "", fmt.Errorf("position %d: %s at %d, unavailable %w, edited %v", at, m.ID, m.Position, m.Unavailable, m.Edited)
	}
	return BodyOf(m), nil
}

// Verify reports an error unless the context shows one of the states, and a check finds nothing; or with done false nothing
// worse than files of messages, or blobs that nothing needs, which are missing, torn or old.
func (w *World) Verify(done bool, states ...Transcript) error {
	got, err := ReadEveryWay(w.C)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(states, func(s Transcript) bool { return Equal(got, s) }) {
		return fmt.Errorf("it shows %v, wanted %v", Summarise(got), Summarise(states[len(states)-1]))
	}
	for f, err := range checking.Check(w.Ctx, w.Store, nil, checking.Options{ReadData: true}) {
		if err != nil {
			return err
		}
		if f.Severity == integrity.SeverityError || done && f.Severity != integrity.SeverityInfo {
			return fmt.Errorf("a check finds %+v", f)
		}
	}
	return nil
}

// Summarise returns a line for each message of a transcript, for error messages.
func Summarise(s Transcript) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for i, m := range s[name] {
			all = append(all, fmt.Sprintf("%s %d: %.24s (%d)", name, i, m.Body, len(m.Body)))
		}
	}
	return all
}
