package replica

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// childEnv names two stores that a child process brings together, or one that it answers for.
const childEnv = "CTXDIR_TEST_SYNC"

func TestMain(m *testing.M) {
	if stores := os.Getenv(childEnv); stores != "" {
		if err := syncInChild(filepath.SplitList(stores)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// telling is a peer that tells of each call, before and after it.
type telling struct{ Peer }

func (p telling) Heads(ctx context.Context, of []HeadRequest) ([]Head, error) {
	fmt.Println("heads")
	return p.Peer.Heads(ctx, of)
}

func (p telling) Read(ctx context.Context, of []Range, size int64) ([]Message, error) {
	fmt.Println("read")
	return p.Peer.Read(ctx, of, min(size, 2000))
}

func (p telling) Apply(ctx context.Context, c []Change, payload func(string) (io.ReadCloser, int64, error)) ([]Result, error) {
	fmt.Println("apply")
	r, err := p.Peer.Apply(ctx, c, payload)
	fmt.Println("applied")
	return r, err
}

func syncInChild(stores []string) error {
	var folders []*Folder
	for _, dir := range stores {
		s, err := ctxdir.Open(dir)
		if err != nil {
			return err
		}
		folders = append(folders, NewFolder(s))
	}
	if len(folders) == 1 {
		return ServePipe(context.Background(), folders[0], Limits{}, os.Stdin, os.Stdout)
	}
	_, err := Sync(context.Background(), folders[0], telling{folders[1]}, Options{Host: "a"})
	return err
}

// killing is a peer that is killed while it answers a call.
type killing struct {
	Peer
	calls *int // until it is killed
	kill  func()
}

func (p killing) count() {
	if *p.calls--; *p.calls == 0 {
		go p.kill()
	}
}

func (p killing) Contexts(ctx context.Context, known map[uuid.UUID]string) ([]State, error) {
	p.count()
	return p.Peer.Contexts(ctx, known)
}

func (p killing) Heads(ctx context.Context, of []HeadRequest) ([]Head, error) {
	p.count()
	return p.Peer.Heads(ctx, of)
}

func (p killing) Read(ctx context.Context, of []Range, size int64) ([]Message, error) {
	p.count()
	return p.Peer.Read(ctx, of, min(size, 2000))
}

func (p killing) Apply(ctx context.Context, c []Change, payload func(string) (io.ReadCloser, int64, error)) ([]Result, error) {
	p.count()
	return p.Peer.Apply(ctx, c, payload)
}

// killPeer brings a store and one of another process together, and kills that process at a call.
func killPeer(d *device, store string, call int) (killed bool) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), childEnv+"="+store), os.Stderr
	in, out := must[io.WriteCloser](d.t)(cmd.StdinPipe()), must[io.ReadCloser](d.t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	peer := killing{NewClient(NewPipe(out, in), uuid.Nil), &call, func() { _ = cmd.Process.Kill() }}
	_, err := Sync(d.t.Context(), d.f, peer, Options{Host: d.name})
	_ = in.Close()
	if ended := cmd.Wait(); ended != nil {
		return true
	}
	if err != nil {
		d.t.Error(err)
	}
	return false
}

// TestKilled: a sync of which either side is killed at any call, again and again, leaves both stores whole, and the next one goes on.
func TestKilled(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 6
	}
	r := rand.New(rand.NewPCG(1, 2))
	var all []*device
	var paths []string
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(t.TempDir(), name)
		s := must[*ctxdir.Store](t)(ctxdir.Init(dir))
		d := &device{t, name, s, NewFolder(s)}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		all, paths = append(all, d), append(paths, dir)
	}
	var contexts []uuid.UUID
	kept := map[uuid.UUID]bool{}
	var killed [3]int
	for round := range rounds {
		for i, d := range all {
			if round%4 == i && len(contexts) < 4 {
				contexts = append(contexts, d.create(ctxdir.Metadata{Title: fmt.Sprint("context ", round)}))
			}
			for id, err := range d.s.IDs() {
				if err != nil {
					t.Fatal(err)
				}
				for range r.IntN(4) {
					text := fmt.Sprint(d.name, " in round ", round, strings.Repeat(" and on", r.IntN(400)))
					for _, m := range d.append(id, "main", text) {
						kept[m] = true
					}
				}
			}
		}
		side := round % 3
		var gone bool
		if side < 2 { // the peer
			gone = killPeer(all[side], paths[1-side], 1+r.IntN(6))
		} else {
			gone = killSync(t, paths, 1+r.IntN(5))
		}
		if gone {
			killed[side]++
		}
		for _, d := range all {
			for f, err := range d.s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
				if err != nil || f.Severity == ctxdir.SeverityError {
					t.Errorf("round %d, %s: %+v, %v", round, d.name, f, err)
				}
			}
		}
	}
	all[0].sync(all[1].f, Options{})
	same(t, all[0], all[1])
	for _, d := range all {
		text := strings.Join(d.shown(), "\n")
		for id := range kept {
			if strings.Count(text, id.String()) == 0 {
				t.Errorf("%s lacks message %s", d.name, id)
			}
		}
	}
	t.Logf("killed %v of %d, %d contexts", killed, rounds, len(contexts))
}

// killSync brings two stores together in another process, and kills it at a call.
func killSync(t *testing.T, paths []string, call int) (killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(paths, string(filepath.ListSeparator)))
	cmd.Stderr = os.Stderr
	out := must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := call; n >= 0 && lines.Scan(); n-- {
		if n == 0 {
			_ = cmd.Process.Kill()
		}
	}
	for lines.Scan() { // to the end
	}
	return cmd.Wait() != nil
}
