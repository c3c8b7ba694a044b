package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/api"
)

// TestBlobNames: a blob is looked up by a hash, and nothing else names a file.
func TestBlobNames(t *testing.T) {
	k := newKit(t, api.Options{})
	for name, want := range map[string]int{
		strings.Repeat("a", 64): http.StatusNotFound, strings.Repeat("A", 64): http.StatusBadRequest, "x": http.StatusBadRequest,
		"..%2f..%2fctxdir.json": http.StatusBadRequest, "..%2f" + strings.Repeat("a", 61): http.StatusBadRequest,
	} {
		if got := k.do("GET", "/v1/blobs/"+name, ""); got.StatusCode != want {
			t.Errorf("%s: %d, want %d: %s", name, got.StatusCode, want, got.body)
		}
	}
}
