package server_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/internal/s3test"
	"github.com/ctxdir/ctxdir/server/pgfs"
)

// inFolder returns a bucket in a folder.
func inFolder(t *testing.T, dir string) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open("file://"+dir, bucket.Credentials{})
	must(t, err)
	return b
}

// dense returns a text that does not get smaller, and so large that the bucket has it.
func dense() string {
	b := make([]byte, 100_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// messages is the path of the messages of a context.
func messages(id string) string { return "/v1/contexts/" + id + "/branches/main/messages" }

// TestNothingInTheBucket looks for what users have, and who they are, in the names and the bytes of all objects.
func TestNothingInTheBucket(t *testing.T) {
	store := s3test.Start(t)
	at := newDatabase(t)
	at.bucket = store.Open(t)
	k := newKit(t, at, server.Options{})
	text := "CANARY-TEXT" + dense() + "CANARY-TEXT"
	id := k.create(k.tokens["ada"], "CANARY-TITLE", text)
	if a := k.do(k.tokens["ada"], "PUT", "/v1/artifacts/CANARY-NAME", `{"plan":"`+text+`"}`); a.status != http.StatusCreated {
		t.Fatal(a.status)
	}
	ada, err := k.users.Find(t.Context(), "ada")
	must(t, err)
	all := store.Content(t)
	if len(all) < 2 {
		t.Fatalf("the bucket has %d objects", len(all))
	}
	size := 0
	for name, data := range all {
		size += len(data)
		for _, canary := range []string{
			"CANARY", id, ada.ID.String(), string(ada.ID[:]), k.tokens["ada"], "ctxdir.json", "metadata", dense()[:40],
		} {
			if strings.Contains(name, canary) || bytes.Contains(data, []byte(canary)) {
				t.Errorf("%s has %q", name, canary)
			}
		}
	}
	if size < len(text) {
		t.Errorf("the bucket has only %d bytes", size)
	}
	if a := k.do(k.tokens["ada"], "GET", messages(id), ""); !strings.Contains(a.body, text) {
		t.Errorf("reading: %d", a.status)
	}
}

// TestObjectStoreAway: until the object store is back, texts in it are unavailable, and writes that need it get 503. The others go
// on.
func TestObjectStoreAway(t *testing.T) {
	store := s3test.Start(t)
	at := newDatabase(t)
	at.bucket = store.Open(t)
	var failed atomic.Int64
	at.failed = func(error) { failed.Add(1) }
	k := newKit(t, at, server.Options{Idle: time.Nanosecond})
	ada := k.tokens["ada"]
	text := dense()
	id := k.create(ada, "title", text)
	small := k.create(ada, "title", "small")
	eventually(t, "no store is open", func() bool { return strings.Contains(k.metrics(), "ctxdir_stores_open 0\n") })
	store.Away.Store(true)
	a := k.do(ada, "GET", messages(id), "")
	if !strings.Contains(a.body, `"unavailable":"`) || !strings.Contains(a.body, "the object store failed") || strings.Contains(a.body, "s3") {
		t.Errorf("reading: %d %.500s", a.status, a.body)
	}
	body := `{"role":"user","content":"` + text[1:] + `"}`
	if a := k.do(ada, "POST", messages(id), body); a.status != http.StatusServiceUnavailable {
		t.Errorf("writing: %d %.300s", a.status, a.body)
	}
	if a := k.do(ada, "GET", messages(small), ""); a.status != http.StatusOK || !strings.Contains(a.body, "small") {
		t.Errorf("reading what the database has: %d %.300s", a.status, a.body)
	}
	if a := k.do(ada, "POST", messages(small), `{"role":"user","content":"more"}`); a.status != http.StatusCreated {
		t.Errorf("writing what the database takes: %d %.300s", a.status, a.body)
	}
	store.Away.Store(false)
	if a := k.do(ada, "POST", messages(id), body); a.status != http.StatusCreated {
		t.Errorf("writing once it is back: %d %.300s", a.status, a.body)
	}
	if a := k.do(ada, "GET", messages(id), ""); strings.Count(a.body, text[1:]) != 2 {
		t.Errorf("reading once it is back: %d", a.status)
	}
	if failed.Load() == 0 {
		t.Error("nobody heard of it")
	}
}

// TestErasedObjects: a sweep removes the objects of a user who was erased, and nothing of others.
func TestErasedObjects(t *testing.T) {
	at, dir := newDatabase(t), t.TempDir()
	at.bucket = inFolder(t, dir)
	k := newKit(t, at, server.Options{})
	k.create(k.tokens["ada"], "title", dense())
	id := k.create(k.tokens["bob"], "title", dense())
	_, err := k.users.Remove(t.Context(), "ada")
	must(t, err)
	_, err = k.users.Erase(t.Context(), "ada")
	must(t, err)
	sweep := func(grace time.Duration, want pgfs.Swept) {
		t.Helper()
		s, err := k.stores.(*server.Database).Sweep(t.Context(), grace)
		must(t, err)
		if s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	sweep(0, pgfs.Swept{Objects: 2})
	old := time.Now().Add(-25 * time.Hour)
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	}))
	sweep(time.Hour, pgfs.Swept{Objects: 2, Orphans: 1})
	sweep(0, pgfs.Swept{Objects: 2, Orphans: 1, Removed: 1})
	if a := k.do(k.tokens["bob"], "GET", messages(id), ""); !strings.Contains(a.body, dense()) {
		t.Errorf("reading what bob has: %d", a.status)
	}
}
