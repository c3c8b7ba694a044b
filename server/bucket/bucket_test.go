package bucket_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/internal/s3test"
	"github.com/google/uuid"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func each(t *testing.T, test func(t *testing.T, b bucket.Bucket)) {
	t.Run("folder", func(t *testing.T) {
		b, err := bucket.Open("file://"+t.TempDir(), bucket.Credentials{})
		check(t, err)
		test(t, b)
	})
	t.Run("s3", func(t *testing.T) { test(t, s3test.Start(t).Open(t)) })
}

// TestBucket puts, gets, lists and removes.
func TestBucket(t *testing.T) { each(t, testBucket) }

func testBucket(t *testing.T, b bucket.Bucket) {
	data := bytes.Repeat([]byte("some text\x00\xff\n"), 10_000)
	names := func(folder string) (names []string) {
		for x, err := range b.List(t.Context(), folder) {
			check(t, err)
			if age := time.Since(x.Modified); age < -time.Hour || age > time.Hour {
				t.Errorf("%s was written at %s", x.Name, x.Modified)
			}
			names = append(names, x.Name)
		}
		slices.Sort(names)
		return names
	}
	if _, err := b.Get(t.Context(), "a/b", 10); !errors.Is(err, bucket.ErrMissing) {
		t.Errorf("nothing was put: %v", err)
	}
	if got := names("a"); len(got) > 0 {
		t.Errorf("nothing was put: %s", got)
	}
	for _, name := range []string{"a/b", "a/c/d", "ab/e", "a/b"} {
		check(t, b.Put(t.Context(), name, data))
		check(t, b.Put(t.Context(), name, append(data, name...)))
	}
	got, err := b.Get(t.Context(), "a/c/d", len(data)+5)
	check(t, err)
	if !bytes.Equal(got, append(data, "a/c/d"...)) {
		t.Errorf("%d bytes came back, of %d", len(got), len(data)+5)
	}
	if got, err := b.Get(t.Context(), "a/b", len(data)+2); !errors.Is(err, bucket.ErrTooLarge) {
		t.Errorf("one byte too many: %d bytes, %v", len(got), err)
	}
	if got := fmt.Sprint(names("a")); got != "[a/b a/c/d]" {
		t.Errorf("it has %s", got)
	}
	for range 2 {
		check(t, b.Remove(t.Context(), "a/b"))
	}
	if got := fmt.Sprint(names("a")); got != "[a/c/d]" {
		t.Errorf("it has %s", got)
	}
}

// TestPages lists more than a store lists at once.
func TestPages(t *testing.T) {
	b := s3test.Start(t).Open(t)
	const count = 1200
	for i := range count {
		check(t, b.Put(t.Context(), fmt.Sprintf("many/%02x/%d", i%256, i), []byte("x")))
	}
	names := map[string]bool{}
	for x, err := range b.List(t.Context(), "many") {
		check(t, err)
		names[x.Name] = true
	}
	if len(names) != count {
		t.Errorf("%d objects are listed", len(names))
	}
}

// TestObjects: an object is missing only as long as the marker is there.
func TestObjects(t *testing.T) { each(t, testObjects) }

func testObjects(t *testing.T, b bucket.Bucket) {
	o, other := bucket.NewObjects(b, uuid.New()), bucket.NewObjects(b, uuid.New())
	if err := o.Check(t.Context()); !errors.Is(err, bucket.ErrOther) {
		t.Errorf("without the marker: %v", err)
	}
	if _, err := o.Get(t.Context(), uuid.New(), 10); !errors.Is(err, bucket.ErrOther) || errors.Is(err, bucket.ErrMissing) {
		t.Errorf("without the marker: %v", err)
	}
	check(t, o.Mark(t.Context()))
	check(t, o.Check(t.Context()))
	if err := other.Check(t.Context()); !errors.Is(err, bucket.ErrOther) {
		t.Errorf("the marker of another database: %v", err)
	}
	check(t, other.Mark(t.Context()))
	if _, err := o.Get(t.Context(), uuid.New(), 10); !errors.Is(err, bucket.ErrMissing) || o.Failure() != nil {
		t.Errorf("a missing object: %v, %v", err, o.Failure())
	}
	id, theirs := uuid.New(), uuid.New()
	check(t, o.Put(t.Context(), id, []byte("text")))
	check(t, other.Put(t.Context(), theirs, []byte("text")))
	n := 0
	for x, err := range o.List(t.Context()) {
		check(t, err)
		if n++; x.Object != id {
			t.Errorf("%s was listed", x.Object)
		}
	}
	if n != 1 {
		t.Errorf("%d objects were listed", n)
	}
}

// TestAway: a store that does not answer is never one without the object.
func TestAway(t *testing.T) {
	s := s3test.Start(t)
	o := bucket.NewObjects(s.Open(t), uuid.New())
	check(t, o.Mark(t.Context()))
	id := uuid.New()
	check(t, o.Put(t.Context(), id, []byte("text")))
	s.Away.Store(true)
	_, get := o.Get(t.Context(), id, 10)
	for what, err := range map[string]error{
		"get": get, "put": o.Put(t.Context(), uuid.New(), nil), "check": o.Check(t.Context()), "failure": o.Failure(),
	} {
		if !bucket.IsUnreachable(err) || errors.Is(err, bucket.ErrMissing) || errors.Is(err, bucket.ErrOther) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range o.List(t.Context()) {
		continue
	}
	s.Away.Store(false)
	if _, err := o.Get(t.Context(), id, 10); err != nil || o.Failure() != nil {
		t.Errorf("it is back: %v, %v", err, o.Failure())
	}
	gone, err := bucket.Open("s3://none?region=x&endpoint=http://127.0.0.1:1", s3test.Credentials)
	check(t, err)
	if err := bucket.NewObjects(gone, uuid.New()).Check(t.Context()); !bucket.IsUnreachable(err) {
		t.Errorf("nobody listens: %v", err)
	}
	other := strings.Replace(s.URL, "s3://objects", "s3://no-such-bucket", 1)
	wrong, err := bucket.Open(other, s3test.Credentials)
	check(t, err)
	_, err = wrong.Get(t.Context(), "a", 10)
	if err == nil || errors.Is(err, bucket.ErrMissing) || bucket.IsUnreachable(err) {
		t.Errorf("no such bucket: %v", err)
	}
}

// TestUnmounted: a folder whose objects went, with the marker, is not a folder without an object.
func TestUnmounted(t *testing.T) {
	dir := t.TempDir()
	b, err := bucket.Open("file://"+dir, bucket.Credentials{})
	check(t, err)
	o := bucket.NewObjects(b, uuid.New())
	check(t, o.Mark(t.Context()))
	id := uuid.New()
	check(t, o.Put(t.Context(), id, []byte("text")))
	all, err := filepath.Glob(dir + "/*")
	check(t, err)
	check(t, os.Rename(all[0], dir+"/elsewhere"))
	if _, err := o.Get(t.Context(), id, 10); err == nil || errors.Is(err, bucket.ErrMissing) {
		t.Errorf("%v", err)
	}
}

// TestAbandonedFile: a list removes what a crash left of a write, once it is old.
func TestAbandonedFile(t *testing.T) {
	dir := t.TempDir()
	b, err := bucket.Open("file://"+dir, bucket.Credentials{})
	check(t, err)
	check(t, b.Put(t.Context(), "a/b", nil))
	for _, name := range []string{"a/.new", "a/.old"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	old := time.Now().Add(-25 * time.Hour)
	check(t, os.Chtimes(filepath.Join(dir, "a/.old"), old, old))
	for x, err := range b.List(t.Context(), "a") {
		check(t, err)
		if x.Name != "a/b" {
			t.Errorf("%s was listed", x.Name)
		}
	}
	left, err := filepath.Glob(dir + "/a/.*")
	check(t, err)
	if len(left) != 1 || filepath.Base(left[0]) != ".new" {
		t.Errorf("%s is left", left)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	none := bucket.Credentials{}
	for _, c := range []struct {
		address string
		with    bucket.Credentials
		err     string // empty: it opens
	}{
		{"file://" + dir, none, ""},
		{"s3://bucket", none, ""},
		{"s3://bucket/a/b?region=eu-west-1&endpoint=https://host:9000/", s3test.Credentials, ""},
		{"gs://bucket/folder", s3test.Credentials, ""},
		{"file://" + dir + "/none", none, "the folder for objects"},
		{"file://host" + dir, none, "expected a whole path"},
		{"file:relative", none, "expected a whole path"},
		{"s3://", none, "the name of the bucket is missing"},
		{"s3://id:CANARY@bucket", none, "credentials do not belong into the address"},
		{"s3://bucket?regoin=x", none, `no parameter "regoin"`},
		{"s3://bucket?endpoint=host", none, "expected an address such as https://host:9000"},
		{"s3://bucket?endpoint=https://id:CANARY@host", none, "expected an address"},
		{"s3://bucket", bucket.Credentials{KeyID: "id"}, "need each other"},
		{"gs://bucket", none, "HMAC key"},
		{"gs://bucket?region=x", s3test.Credentials, `no parameter "region"`},
		{"bucket", none, "is not an address"},
		{":", none, "expected an address"},
	} {
		_, err := bucket.Open(c.address, c.with)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v", c.address, err)
		}
	}
}
