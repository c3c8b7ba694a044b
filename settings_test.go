package ctxdir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
)

// TestSettings: settings are kept in ctxdir.json, beside unknown members, and several programs may change them at once.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	s := must(ctxdir.Init(dir))
	defer s.Close()
	path := filepath.Join(dir, "ctxdir.json")
	file := strings.Replace(string(must(os.ReadFile(path))), `"settings": {`, `"new": [1], "settings": {"newer": {"a": 1.0}`, 1)
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := must(s.Settings()), (ctxdir.Settings{TextThreshold: 16 << 10}); !reflect.DeepEqual(got, want) {
		t.Errorf("at first %+v", got)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			other := must(ctxdir.Open(dir))
			defer other.Close()
			if err := other.Configure(t.Context(), func(s *ctxdir.Settings) error { s.KeepLast++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want := ctxdir.Settings{
		TextThreshold: -1, ArchiveAfter: 90 * time.Second, KeepLast: 20, TrashGrace: 2 * time.Second,
		CacheSize: 100e6, MaxTokens: 4000, StorageMode: ctxdir.StorageLocal, Extraction: ctxdir.ExtractHybrid,
	}
	err := s.Configure(t.Context(), func(s *ctxdir.Settings) error {
		s.TextThreshold, s.ArchiveAfter, s.TrashGrace = -1, 90*time.Second, time.Second+1
		s.CacheSize, s.MaxTokens, s.StorageMode, s.Extraction = 100e6, 4000, ctxdir.StorageLocal, ctxdir.ExtractHybrid
		return nil
	})
	if got := must(s.Settings()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, wanted %+v, %v", got, want, err)
	}
	if file = string(must(os.ReadFile(path))); !strings.Contains(file, `"new": [`) || !strings.Contains(file, `"a": 1.0`) {
		t.Errorf("a member is missing: %s", file)
	}
	other := must(ctxdir.Open(dir))
	defer other.Close()
	if other.Info().TextThreshold != -1 || other.Info().ID != s.Info().ID {
		t.Errorf("%+v", other.Info())
	}
}

// TestSettingsRefused: a change that fails, or is not valid, changes nothing.
func TestSettingsRefused(t *testing.T) {
	dir := t.TempDir()
	s := must(ctxdir.Init(dir))
	defer s.Close()
	before := string(must(os.ReadFile(filepath.Join(dir, "ctxdir.json"))))
	reason := errors.New("a reason")
	read := must(ctxdir.Open(dir, ctxdir.Options{ReadOnly: true}))
	defer read.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	keep := func(s *ctxdir.Settings) error { s.KeepLast = 3; return nil }
	for _, err := range []struct {
		name      string
		got, want error
	}{
		{"fails", s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.KeepLast = 3; return reason }), reason},
		{"negative", s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.KeepLast = -3; return nil }), ctxdir.ErrInvalid},
		{"negative time", s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.ArchiveAfter = -3; return nil }), ctxdir.ErrInvalid},
		{"negative size", s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.CacheSize = -1; return nil }), ctxdir.ErrInvalid},
		{"storage mode", s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.StorageMode = "cloud"; return nil }), ctxdir.ErrInvalid},
		{"extraction", s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.Extraction = "zip"; return nil }), ctxdir.ErrInvalid},
		{"for reading", read.Configure(t.Context(), keep), ctxdir.ErrReadOnly},
		{"cancelled", s.Configure(gone, keep), context.Canceled},
	} {
		if !errors.Is(err.got, err.want) {
			t.Errorf("%s: %v, wanted %v", err.name, err.got, err.want)
		}
	}
	if after := string(must(os.ReadFile(filepath.Join(dir, "ctxdir.json")))); after != before {
		t.Errorf("changed: %s", after)
	}
}

// TestCacheSize: the setting bounds the messages in memory, unless the program gives a bound.
func TestCacheSize(t *testing.T) {
	dir := t.TempDir()
	s := must(ctxdir.Init(dir))
	c := must(s.Create(t.Context(), ctxdir.Metadata{}))
	must(c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(`{"role":"user"}`)}))
	id := c.ID()
	keeps := func(opts ...ctxdir.Options) bool {
		s := must(ctxdir.Open(dir, opts...))
		defer s.Close()
		c := must(s.Open(t.Context(), id))
		defer c.Close()
		first, second := must(c.Active().Range(t.Context(), 0, 1)), must(c.Active().Range(t.Context(), 0, 1))
		return &first[0].Stored[0] == &second[0].Stored[0]
	}
	if !keeps() {
		t.Error("by default, no message stays in memory")
	}
	if err := s.Configure(t.Context(), func(s *ctxdir.Settings) error { s.CacheSize = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if keeps() {
		t.Error("a message stays in a cache of one byte")
	}
	if !keeps(ctxdir.Options{CacheSize: 1 << 20}) {
		t.Error("the option does not precede the setting")
	}
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}
