package ctxdir_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
)

// TestOpenPayload: the store has a payload by its hash alone, verified, and takes nothing but a hash.
func TestOpenPayload(t *testing.T) {
	s, err := ctxdir.Init(t.TempDir(), ctxdir.Options{TextThreshold: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("long ", 1000)
	if _, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: json.RawMessage(`{"role":"user","content":"` + text + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, err := c.Active().Last(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := last[0].Payloads()
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	sum := all[0].SHA256
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	r, size, err := s.OpenPayload(t.Context(), sum)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || string(got) != text || size != int64(len(text)) {
		t.Errorf("%d bytes, size %d: %v", len(got), size, err)
	}
	for hash, want := range map[string]error{
		strings.Repeat("0", 64): ctxdir.ErrNotExist, "": ctxdir.ErrInvalid, sum[1:]: ctxdir.ErrInvalid, strings.ToUpper(sum): ctxdir.ErrInvalid,
		"../" + sum[3:]: ctxdir.ErrInvalid, sum + "/": ctxdir.ErrInvalid,
	} {
		if _, _, err := s.OpenPayload(t.Context(), hash); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", hash, err, want)
		}
	}

	files, err := filepath.Glob(filepath.Join(s.Info().Path, "blobs", "*", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-8] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, _, err = s.OpenPayload(t.Context(), sum)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		_ = r.Close()
	}
	if !errors.Is(err, ctxdir.ErrDamaged) {
		t.Errorf("a damaged blob: %v", err)
	}
}
