package ctxdir

import (
	"testing"
	"time"
)

// TestOptions: a zero field of the options of a store is its default, and the last value that is not zero counts.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	s, err := Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	set := Options{
		ReadOnly: true, LockTimeout: time.Minute, TextThreshold: 7, MaxMessage: 8, MemoryLimit: 9, CacheSize: 10,
	}
	type values struct {
		ReadOnly                                          bool
		LockTimeout                                       time.Duration
		TextThreshold, MaxMessage, MemoryLimit, CacheSize int64
	}
	defaults := values{false, 10 * time.Second, 16 << 10, 256 << 20, 256 << 20, 64 << 20}
	for name, x := range map[string]struct {
		options []Options
		want    values
	}{
		"none":     {nil, defaults},
		"zero":     {[]Options{{}}, defaults},
		"set":      {[]Options{set}, values{true, time.Minute, 7, 8, 9, 10}},
		"joined":   {[]Options{set, {}, {TextThreshold: 11}}, values{true, time.Minute, 11, 8, 9, 10}},
		"negative": {[]Options{{LockTimeout: -1, TextThreshold: -1, CacheSize: -1}}, values{false, 0, -1, 256 << 20, 256 << 20, 0}},
	} {
		s, err := Open(dir, x.options...)
		if err != nil {
			t.Fatal(err)
		}
		e := s.e
		is := values{e.ReadOnly, e.Options.LockTimeout, s.Info().TextThreshold, e.Options.MaxMessage, e.Options.Memory, e.Options.Pool}
		if is != x.want {
			t.Errorf("%s: %+v", name, is)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
