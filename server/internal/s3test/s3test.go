// Package s3test starts an object store in the process of a test, which speaks the protocol of Amazon S3.
package s3test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Store is an object store with an empty bucket, in memory.
type Store struct {
	URL  string      // of the bucket
	Away atomic.Bool // every request is answered with 503

	memory *s3mem.Backend
}

// Credentials are those that the store takes. It takes any.
var Credentials = bucket.Credentials{KeyID: "id", Secret: "CANARY-SECRET"}

// Start starts a store, until the test ends.
func Start(t testing.TB) *Store {
	t.Helper()
	memory := s3mem.New()
	if err := memory.CreateBucket("objects"); err != nil {
		t.Fatal(err)
	}
	s := &Store{memory: memory}
	store := gofakes3.New(memory).Server()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	s.URL = "s3://objects/some/folder?region=us-east-1&endpoint=" + h.URL
	return s
}

// Content returns the names and the bytes of all objects.
func (s *Store) Content(t testing.TB) map[string][]byte {
	t.Helper()
	list, err := s.memory.ListBucket("objects", &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, x := range list.Contents {
		o, err := s.memory.GetObject("objects", x.Key, nil)
		if err != nil {
			t.Fatal(err)
		}
		if all[x.Key], err = io.ReadAll(o.Contents); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Open opens the bucket.
func (s *Store) Open(t testing.TB) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(s.URL, Credentials)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
