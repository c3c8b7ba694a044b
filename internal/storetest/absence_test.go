package storetest_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// TestFaultIsNotAbsence lets each call in turn that reads fail, of everything that finds contexts: a new one, a legacy one in
// a file and one in a folder. The answer is then that without a fault, or tells of the fault. It never says that something is
// not there, or damaged.
func TestFaultIsNotAbsence(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	plan := &faultPlan{}
	s := openWith(t, dir, plan)
	defer s.Close()
	c := kit.Must[*ctxdir.Context](t)(s.Create(t.Context(), ctxdir.Metadata{Title: "new"}))
	kit.Check(t, c.Close())
	ids := []uuid.UUID{c.ID(), uuid.MustParse(legacytest.ID(500)), uuid.MustParse(legacytest.ID(600))}
	file := filepath.Join(dir, ids[1].String()+".json")
	kit.Check(t, os.WriteFile(file, []byte(legacytest.Whole(ids[1].String())), 0o600))
	folder := filepath.Join(dir, ids[2].String())
	kit.Check(t, os.MkdirAll(filepath.Join(folder, "messages_pool"), 0o700))
	kit.Check(t, os.WriteFile(filepath.Join(folder, "context.json"), []byte(legacytest.Split(legacytest.Whole(ids[2].String()))), 0o600))

	calls := map[string]func() (string, error){
		"ids": func() (got string, err error) {
			for id, err := range s.IDs() {
				if err != nil {
					return "", err
				}
				got += id.String() + "\n"
			}
			return got, nil
		},
		"list": func() (string, error) {
			var got []string
			var problems error
			for sum, err := range s.List(t.Context(), ctxdir.ListOptions{}) {
				if err != nil {
					return "", err
				}
				got = append(got, sum.ID.String())
				problems = errors.Join(problems, sum.Problem)
			}
			slices.Sort(got)
			if len(got) != len(ids) {
				return "", fmt.Errorf("the list has only %v: %w", got, ctxdir.ErrNotExist)
			}
			return strings.Join(got, "\n"), problems
		},
	}
	for i, id := range ids {
		calls[fmt.Sprint("resolve ", i)] = func() (string, error) { return resolved(s, id.String()) }
		calls[fmt.Sprint("resolve a part ", i)] = func() (string, error) { return resolved(s, id.String()[24:]) }
		calls[fmt.Sprint("use ", i)] = func() (got string, err error) {
			err = s.Use(t.Context(), id, func(c *ctxdir.Context) error {
				got = c.ID().String()
				return nil
			})
			return got, err
		}
		calls[fmt.Sprint("open ", i)] = func() (string, error) {
			c, err := s.Open(t.Context(), id)
			if err != nil {
				return "", err
			}
			return c.ID().String(), c.Close()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		call := calls[name]
		t.Run(name, func(t *testing.T) {
			without, err := call()
			kit.Check(t, err)
			faults := 0
			for i := 2; ; i++ {
				lasts := i%2 == 1
				plan.arm(i/2, lasts)
				got, err := call()
				where := plan.disarm()
				if where == "" {
					break
				}
				if err != nil {
					faults++
				}
				switch {
				case err == nil && got != without:
					t.Errorf("when %q fails (for good: %t): %q instead of %q", where, lasts, got, without)
				case errors.Is(err, ctxdir.ErrNotExist), errors.Is(err, ctxdir.ErrDamaged) && !errors.Is(err, syscall.EIO):
					t.Errorf("when %q fails (for good: %t): %v", where, lasts, err)
				}
			}
			if faults == 0 {
				t.Error("nothing failed")
			}
		})
	}
}

func resolved(s *ctxdir.Store, ref string) (string, error) {
	id, err := s.Resolve(ref)
	return id.String(), err
}

// arm makes the kth call from now on fail, and with lasts all after it.
func (p *faultPlan) arm(k int, lasts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.failAt, p.failed, p.lasts, p.where = 0, k, false, lasts, ""
}

// disarm ends that, and returns the call that failed, empty if none did.
func (p *faultPlan) disarm() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failAt, p.failed = 0, false
	return p.where
}
