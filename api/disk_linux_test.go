package api_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/search"
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

// TestIndexAtTheEnd: a request that runs while the server ends gets its answer, and no file of the search index stays open after it.
func TestIndexAtTheEnd(t *testing.T) {
	k := newKit(t, api.Options{})
	id := k.context(3)
	conn, err := net.Dial("tcp", k.host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := fmt.Sprintf(`{"context":%q,"query":"text","max_tokens":100}`, id)
	fmt.Fprintf(conn, "POST /v1/assemble HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", k.host, token, len(body))
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") { // the server reads the body
		t.Fatal(line, err)
	}
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	k.stop()
	for { // until it listens no more
		other, err := net.Dial("tcp", k.host)
		if err != nil {
			break
		}
		_ = other.Close()
	}
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if said, err := io.ReadAll(a.Body); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", a.Status, said, err)
	}
	err = <-k.ended
	k.ended <- err
	if err != nil {
		t.Error(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(k.store.Info().Path, "derived", search.File)
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, index) {
			t.Errorf("%s is open", to)
		}
	}
}
