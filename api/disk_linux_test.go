package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"golang.org/x/sys/unix"
)

// TestFullDisk fills the disk of a store. An append is then refused and stores nothing, reads go on, and with room again
// the same request succeeds.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("ctxdir-test", dir, "tmpfs", 0, fmt.Sprint("size=", 24<<20)); err != nil {
		t.Skip("cannot mount:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s, err := ctxdir.Init(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k := serve(t, s, api.Options{}, func(*api.Server) {})
	id := k.context(3)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	for b.Len() < 8<<20 { // text that does not shrink much
		fmt.Fprintf(&b, "%x ", random.Uint64())
	}
	text := b.String()
	request := func() *answer {
		body := fmt.Sprintf(`{"role":"user","content":%q}`, text)
		return k.do("POST", "/v1/contexts/"+id+"/branches/main/messages", body, "Idempotency-Key: one")
	}
	for range 3 {
		a := request()
		if a.StatusCode == http.StatusCreated {
			t.Fatal("the disk is not full")
		}
		if code := a.problem(t); code != "no_space" || a.StatusCode != http.StatusInsufficientStorage {
			t.Fatalf("%s: %s", a.Status, a.body)
		}
		if got := k.count(id); got != 3 {
			t.Errorf("%d messages, want 3", got)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for _, existed := range []bool{false, true} {
		if a := request(); a.StatusCode != http.StatusCreated || strings.Contains(a.body, "existed") != existed {
			t.Errorf("with room again: %s %s", a.Status, a.body)
		}
	}
	if got := k.count(id); got != 4 {
		t.Errorf("%d messages, want 4", got)
	}
}
