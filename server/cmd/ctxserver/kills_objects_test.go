package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// text returns the text of a message. With an object store, some are so large that they are there: one is several objects.
func (k *kills) text(n int) string {
	s := fmt.Sprint("message ", n)
	if k.objects == "" || n%3 != 0 {
		return s
	}
	b := make([]byte, 40_000+n%5*20_000)
	if n%30 == 0 {
		b = make([]byte, 700_000)
	}
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(b)
	return s + " " + base64.RawURLEncoding.EncodeToString(b)
}

// short returns the beginning of a text that is whole.
func (k *kills) short(text string) string {
	var n int
	if _, err := fmt.Sscanf(text, "message %d", &n); err == nil && text == k.text(n) {
		return fmt.Sprint("message ", n)
	}
	return fmt.Sprintf("%.30s… of %d bytes", text, len(text))
}

func (k *kills) log() string { return filepath.Join(k.dir, "log") }

// sweep removes at once what no row names, and is killed after a time unless that is 0.
func (k *kills) sweep(ctx context.Context, after time.Duration) (ended <-chan struct{}) {
	done := make(chan struct{})
	if k.objects == "" {
		close(done)
		return done
	}
	ctx, stop := context.WithCancel(ctx)
	if after > 0 {
		ctx, stop = context.WithTimeout(ctx, after)
	}
	cmd := k.command(ctx, "--json", "blobs", "sweep", "--blobs-grace", "0s")
	go func() {
		defer close(done)
		defer stop()
		if out, err := cmd.Output(); err == nil {
			k.noteSwept(out)
		}
	}()
	return done
}

func (k *kills) noteSwept(record []byte) {
	var r struct{ Removed int }
	if err := json.Unmarshal(record, &r); err != nil {
		k.Error(err)
	}
	k.sweeps, k.removed = k.sweeps+1, k.removed+r.Removed
}

// age makes all objects so old that a sweep looks at them. No server runs, and the statements of the last one have ended: none of
// these objects is on its way into a row.
func (k *kills) age() {
	k.Helper()
	if k.objects == "" {
		return
	}
	db := k.connect()
	defer func() { _ = db.Close(context.Background()) }()
	for running := -1; running != 0; k.pause(context.Background(), 10*time.Millisecond) {
		const others = `SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
		if err := db.QueryRow(context.Background(), others, k.at).Scan(&running); err != nil {
			k.Fatal(err)
		}
	}
	old := time.Now().Add(-25 * time.Hour)
	for _, path := range k.stored() {
		if err := os.Chtimes(path, old, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.Fatal(err)
		}
	}
}

func (k *kills) connect() *pgx.Conn {
	k.Helper()
	db, err := pgx.Connect(context.Background(), k.db.URL(k.at))
	if err != nil {
		k.Fatal(err)
	}
	return db
}

// stored returns the paths of all objects.
func (k *kills) stored() map[uuid.UUID]string {
	k.Helper()
	all := map[uuid.UUID]string{}
	err := filepath.WalkDir(k.objects, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a sweep removes it
			return nil
		}
		if id, no := uuid.Parse(e.Name()); no == nil && !e.IsDir() {
			all[id] = path
		}
		return err
	})
	if err != nil {
		k.Fatal(err)
	}
	return all
}

// checkObjects looks whether each row has its object, and whether a sweep leaves no other. No server runs.
func (k *kills) checkObjects() {
	k.Helper()
	if k.objects == "" {
		return
	}
	k.age()
	k.noteSwept([]byte(k.run("--json", "blobs", "sweep", "--blobs-grace", "0s")))
	db := k.connect()
	defer func() { _ = db.Close(context.Background()) }()
	rows, err := db.Query(context.Background(), `SELECT object FROM extents WHERE object IS NOT NULL`)
	if err != nil {
		k.Fatal(err)
	}
	named, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		k.Fatal(err)
	}
	all := k.stored()
	for _, x := range named {
		if all[x] == "" {
			k.Errorf("a row names the object %s, which is not there", x)
		}
		delete(all, x)
	}
	if len(all) > 0 || len(named) == 0 {
		k.Errorf("rows name %d objects, and a sweep left %d others", len(named), len(all))
	}
	k.Logf("%d objects; %d sweeps removed %d others", len(named), k.sweeps, k.removed)
}

// checkLog looks for damage that the servers have seen, also if it went again.
func (k *kills) checkLog() {
	k.Helper()
	log, err := os.ReadFile(k.log())
	if err != nil {
		k.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		for _, bad := range []string{"damage in the database", "a request to the object store failed", "panic:"} {
			if strings.Contains(line, bad) {
				k.Errorf("the log has: %.500s", line)
			}
		}
	}
}
