package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server/internal/pgtest"
)

// TestKills kills the server, the database, clients and a rotation of the key at any time, while users write. Every message that
// was acknowledged is there afterwards, once and in its place. $CTXDIR_ROUNDS says how often; a few times by default. With objects,
// large texts are in an object store, and sweeps of it run beside, and are killed, too.
func TestKills(t *testing.T) {
	rounds := 5
	if s := os.Getenv("CTXDIR_ROUNDS"); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	g := newGuide(t)
	t.Run("rows", func(t *testing.T) { testKills(t, g, rounds, "") })
	t.Run("objects", func(t *testing.T) { testKills(t, g, rounds, t.TempDir()) })
}

func testKills(t *testing.T, g guide, rounds int, objects string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	k := newKills(t, g, objects)
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	writers := make([]*killsWriter, 4)
	for i := range writers {
		w := &killsWriter{kills: k, name: fmt.Sprint("user", i), random: rand.New(rand.NewPCG(seed, uint64(i)+1))}
		k.run("user", "add", w.name)
		w.token = strings.TrimSpace(k.run("user", "token", w.name))
		writers[i] = w
		writing.Go(func() { w.write(ctx) })
	}
	mover := newKillsMover(k, seed)
	writing.Go(func() { mover.move(ctx) })
	for range rounds {
		for until := k.acked.Load() + 1 + random.Int64N(40); k.acked.Load() < until && !t.Failed(); {
			k.pause(ctx, time.Millisecond)
		}
		swept := k.sweep(ctx, time.Duration(random.Int64N(2)*random.Int64N(int64(2*time.Second))))
		switch random.IntN(3) {
		case 0:
			k.kill()
			k.age()
			k.start()
		case 1:
			if err := k.db.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := k.db.Run(); err != nil {
				t.Fatal(err)
			}
		default: // rotate, and perhaps not to the end
			ctx, done := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(400*time.Millisecond))))
			_ = k.command(ctx, "key", "rotate").Run()
			done()
		}
		<-swept
	}
	stop()
	writing.Wait()
	k.run("key", "rotate")
	k.run("key", "drop")
	k.kill()
	k.checkObjects()
	k.start()
	for _, w := range writers {
		w.check()
	}
	mover.checkMoves()
	k.kill()
	k.checkLog()
	t.Logf("%d acknowledged in %d rounds", k.acked.Load(), rounds)
}

type kills struct {
	*testing.T
	guide   guide
	dir     string
	env     []string
	db      *pgtest.Server
	at      string // the database
	objects string // the folder of objects, if there is one
	acked   atomic.Int64
	sweeps  int // that ended
	removed int // objects

	server *exec.Cmd
}

// newKills starts a database and a server.
func newKills(t *testing.T, g guide, objects string) *kills {
	t.Helper()
	db, err := pgtest.Start("")
	if errors.Is(err, pgtest.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Stop() })
	pool, name, err := db.Database(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	k := &kills{T: t, guide: g, dir: t.TempDir(), db: db, at: name, objects: objects}
	key := filepath.Join(k.dir, "master.key")
	k.env = append(os.Environ(), "CTXSERVER_DB="+db.URL(name), "CTXSERVER_KEY="+key, "CTXSERVER_LISTEN="+g.address,
		"CTXSERVER_AUDIT=none", "CTXSERVER_IDLE=50ms")
	if objects != "" {
		k.env = append(k.env, "CTXSERVER_BLOBS=file://"+objects)
	}
	k.run("key", "new", key)
	k.start()
	return k
}

func (k *kills) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(k.guide.dir, "bin", "ctxserver"), args...)
	cmd.Env = k.env
	return cmd
}

func (k *kills) run(args ...string) string {
	k.Helper()
	out, err := k.command(context.Background(), args...).CombinedOutput()
	if err != nil {
		k.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// start starts the server, and waits until it is ready.
func (k *kills) start() {
	k.Helper()
	log, err := os.OpenFile(k.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.Fatal(err)
	}
	defer log.Close()
	k.server = k.command(context.Background())
	k.server.Stderr = log
	if err := k.server.Start(); err != nil {
		k.Fatal(err)
	}
	for {
		r, err := http.Get("http://" + k.guide.address + "/readyz") //nolint:noctx // it answers at once
		if err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		k.pause(context.Background(), 10*time.Millisecond)
	}
}

func (k *kills) kill() {
	_ = k.server.Process.Kill()
	_ = k.server.Wait() // it was killed
}

// pause waits before another try.
func (k *kills) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// killsWriter writes the messages 0, 1, 2, … of a user.
type killsWriter struct {
	*kills
	name, token, context string
	random               *rand.Rand
	acked                int // messages
}

func (w *killsWriter) write(ctx context.Context) {
	for ctx.Err() == nil {
		path, key, body := "/v1/contexts", "context", `{"title":"title"}`
		if w.context != "" {
			path, key = "/v1/contexts/"+w.context+"/branches/main/messages", fmt.Sprint("message-", w.acked)
			body = fmt.Sprintf(`{"role":"user","content":%q}`, w.text(w.acked))
		}
		// A client that is killed leaves in the middle of a request.
		try, done := context.WithCancel(ctx)
		if w.random.IntN(10) == 0 {
			try, done = context.WithTimeout(ctx, time.Duration(w.random.Int64N(int64(5*time.Millisecond))))
		}
		status, answer := w.send(try, http.MethodPost, path, key, body)
		done()
		switch {
		case status/100 == 2 && w.context == "":
			var c struct{ ID string }
			if err := json.Unmarshal([]byte(answer), &c); err != nil {
				w.Error(err)
				return
			}
			w.context = c.ID
		case status/100 == 2:
			w.acked++
			w.kills.acked.Add(1)
		case status != 0 && status != http.StatusServiceUnavailable && status != http.StatusInternalServerError:
			w.Errorf("%s: %d %s", path, status, answer)
			return
		default:
			w.pause(ctx, 10*time.Millisecond)
		}
	}
}

// send returns the status, 0 if there was none.
func (w *killsWriter) send(ctx context.Context, method, path, key, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+w.guide.address+path, strings.NewReader(body))
	if err != nil {
		w.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(b)
}

// check compares what the server has with what it acknowledged. One message more may be there: that of the last request.
func (w *killsWriter) check() {
	status, answer := w.send(context.Background(), http.MethodGet, "/v1/contexts/"+w.context+"/branches/main/messages", "", "")
	var got []string
	for line := range strings.Lines(answer) {
		var m struct{ Message struct{ Content string } }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			w.Fatal(err)
		}
		got = append(got, w.short(m.Message.Content))
	}
	var want []string
	for i := range w.acked + 1 {
		want = append(want, fmt.Sprint("message ", i))
	}
	if status != http.StatusOK || !slices.Equal(got, want) && !slices.Equal(got, want[:w.acked]) {
		w.Errorf("%s: status %d, %d messages, %d acknowledged: %.2000s", w.name, status, len(got), w.acked, strings.Join(got, ", "))
	}
	if status, answer := w.send(context.Background(), http.MethodGet, "/v1/contexts", "", ""); strings.Count(answer, `"id"`) != 1 {
		w.Errorf("%s: contexts: %d %s", w.name, status, answer)
	}
}
