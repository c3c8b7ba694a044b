package users

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/ctxdir/ctxdir/server/internal/schema"
	"github.com/google/uuid"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// opener opens the same users again and again.
type opener func() *Users

// each runs a test over a folder and over a database.
func each(t *testing.T, test func(t *testing.T, open opener)) {
	t.Run("files", func(t *testing.T) { test(t, inFiles(t, t.TempDir())) })
	t.Run("database", func(t *testing.T) {
		pool, _ := pgtest.Empty(t)
		if err := schema.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		test(t, func() *Users { return InDatabase(pool) })
	})
}

func inFiles(t *testing.T, dir string) opener {
	return func() *Users {
		t.Helper()
		x, err := OpenFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.Close() })
		return x
	}
}

func TestNames(t *testing.T) { each(t, testNames) }

func testNames(t *testing.T, open opener) {
	x := open()
	for _, name := range []string{"ada", "Ada.Lovelace", "ada+1@example.org", "7", strings.Repeat("a", 64)} {
		if _, err := x.Add(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := x.Add(t.Context(), name); !errors.Is(err, ErrExists) {
			t.Errorf("%q again: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "-a", "a b", "a\n", "ä", "\x00", strings.Repeat("a", 65)} {
		if _, err := x.Add(t.Context(), name); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	all, err := x.List(t.Context())
	if err != nil || len(all) != 5 {
		t.Errorf("%v %v", all, err)
	}
}

func TestTokens(t *testing.T) { each(t, testTokens) }

func testTokens(t *testing.T, open opener) {
	x := open()
	u, err := x.Add(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	x.now = func() time.Time { return now }
	token, made, err := x.NewToken(t.Context(), "ada", TokenOptions{Label: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	short, _, err := x.NewToken(t.Context(), "ada", TokenOptions{Scope: Read, Expires: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	want := func(token string, scope Scope) {
		t.Helper()
		g, err := open().withClock(x.now).Authorize(t.Context(), token)
		if err != nil || g.User != u.ID || g.Scope != scope {
			t.Errorf("%+v %v, want %s", g, err, scope)
		}
	}
	refused := func(what, token string) {
		t.Helper()
		if g, err := x.Authorize(t.Context(), token); !errors.Is(err, ErrUnauthorized) || g.User != uuid.Nil {
			t.Errorf("%s: %+v %v", what, g, err)
		}
	}
	want(token, Write)
	want(short, Read)
	for i := range len(token) { // each character counts
		other := []byte(token)
		if other[i] = 'A'; other[i] == token[i] {
			other[i] = 'B'
		}
		refused(fmt.Sprint("changed at ", i), string(other))
	}
	refused("another user", strings.Repeat("A", 22)+token[22:])
	refused("cut", token[:60])
	refused("with more", token+"AAAA")
	refused("with a line feed", token[:10]+"\n"+token[10:])
	refused("a path", "../../users")
	now = now.Add(time.Hour)
	refused("expired", short)
	want(token, Write)
	if err := x.Revoke(t.Context(), "ada", made.ID); err != nil {
		t.Fatal(err)
	}
	if err := x.Revoke(t.Context(), "ada", made.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	refused("revoked", token)
	for _, o := range []TokenOptions{{Scope: "admin"}, {Label: strings.Repeat("x", 101)}, {Expires: -1}} {
		if _, _, err := x.NewToken(t.Context(), "ada", o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, _, err := x.NewToken(t.Context(), "bob", TokenOptions{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
}

func (x *Users) withClock(now func() time.Time) *Users {
	x.now = now
	return x
}

// TestRemoveAndRestore: a removed user comes back with everything, unless another one has the name.
func TestRemoveAndRestore(t *testing.T) { each(t, testRemoveAndRestore) }

func testRemoveAndRestore(t *testing.T, open opener) {
	x := open()
	u, err := x.Add(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := x.NewToken(t.Context(), "ada", TokenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Remove(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Authorize(t.Context(), token); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("removed: %v", err)
	}
	other, err := x.Add(t.Context(), "ada")
	if err != nil || other.ID == u.ID {
		t.Fatal(other, err)
	}
	if _, err := x.Restore(t.Context(), "ada"); !errors.Is(err, ErrExists) {
		t.Errorf("restored over another one: %v", err)
	}
	if _, err := x.Remove(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	gone, err := x.Removed(t.Context())
	if err != nil || len(gone) != 2 {
		t.Errorf("%v %v", gone, err)
	}
	if _, err := x.Restore(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("restored nobody: %v", err)
	}
	if _, err := x.Add(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Erase(t.Context(), "bob"); !errors.Is(err, ErrNotFound) {
		t.Errorf("erased one who was not removed: %v", err)
	}
	for range 2 {
		if _, err := x.Erase(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
	}
	if gone, err = open().Removed(t.Context()); err != nil || len(gone) != 0 {
		t.Errorf("after the erasure: %v %v", gone, err)
	}
	if all, err := x.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("after the erasure: %v %v", all, err)
	}
}

// TestEnsure: an account has the same user each time, until that one is removed.
func TestEnsure(t *testing.T) { each(t, testEnsure) }

func testEnsure(t *testing.T, open opener) {
	x := open()
	if _, err := x.Add(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	first, err := x.Ensure(t.Context(), id, "ada")
	if err != nil || first.ID != id || first.Name != "user-"+id.String() {
		t.Errorf("%+v %v", first, err)
	}
	again, err := open().Ensure(t.Context(), id, "ada")
	if err != nil || again.ID != id || again.Name != first.Name {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := x.Remove(t.Context(), first.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Ensure(t.Context(), id, "ada"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a removed user: %v", err)
	}
}

func TestQuota(t *testing.T) { each(t, testQuota) }

func testQuota(t *testing.T, open opener) {
	x := open()
	if _, err := x.Add(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	token, _, err := x.NewToken(t.Context(), "ada", TokenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1 << 30, 0} {
		if err := x.SetQuota(t.Context(), "ada", n); err != nil {
			t.Fatal(err)
		}
		if g, err := open().Authorize(t.Context(), token); err != nil || g.Quota != n {
			t.Errorf("%+v %v, want %d", g, err, n)
		}
	}
	if err := x.SetQuota(t.Context(), "ada", -1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative quota: %v", err)
	}
}

// TestAddTogether adds users with the same names at once: one of each wins.
func TestAddTogether(t *testing.T) { each(t, testAddTogether) }

func testAddTogether(t *testing.T, open opener) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	added := map[string]int{}
	for range 8 {
		x := open()
		wg.Go(func() {
			for i := range 10 {
				name := fmt.Sprint("user", i)
				_, err := x.Add(context.WithoutCancel(t.Context()), name)
				mu.Lock()
				if err == nil {
					added[name]++
				} else if !errors.Is(err, ErrExists) {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for name, n := range added {
		if n != 1 {
			t.Errorf("%s was added %d times", name, n)
		}
	}
	if len(added) != 10 {
		t.Errorf("%v", added)
	}
}

// TestHostileFolders: what is not a user's folder is none, and what is not the user of a folder is an error.
func TestHostileFolders(t *testing.T) {
	dir := t.TempDir()
	x := inFiles(t, dir)()
	u, err := x.Add(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes", uuid.NewString(), strings.ToUpper(uuid.NewString())} {
		if err := os.Mkdir(filepath.Join(dir, "users", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := x.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
	file := filepath.Join(dir, "users", u.ID.String(), "user.json")
	another := `{"ctxdir":"user/1","id":"` + uuid.NewString() + `"}`
	for _, text := range []string{"", "{}", `{"ctxdir":"user/2"}`, another, strings.Repeat(" ", maxFile+1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := x.List(t.Context()); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func FuzzAuthorize(f *testing.F) {
	dir := f.TempDir()
	x, err := OpenFiles(dir)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := x.Add(f.Context(), "ada"); err != nil {
		f.Fatal(err)
	}
	token, _, err := x.NewToken(f.Context(), "ada", TokenOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token[:32])
	f.Add("../../../etc/passwd")
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := x.Authorize(t.Context(), s); s != token && !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
