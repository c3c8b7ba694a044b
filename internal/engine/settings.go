package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/message"
)

// Settings are the settings in ctxdir.json, for every program that uses the store. A number of 0, or below, is as good
// as a missing one, except for TextThreshold.
type Settings struct {
	TextThreshold *int64 `json:"text_threshold,omitempty"` // see [WithTextThreshold]
	ArchiveAfter  int64  `json:"archive_after,omitempty"`  // seconds since its commit after which a message is archived
	KeepLast      int64  `json:"keep_last,omitempty"`      // the newest messages of each branch, which are not archived
	TrashGrace    int64  `json:"trash_grace,omitempty"`    // seconds for which removed data stays
	CacheSize     int64  `json:"cache_size,omitempty"`     // see [WithPool]
	MaxTokens     int64  `json:"max_tokens,omitempty"`     // of an assembled context
	StorageMode   string `json:"storage_mode,omitempty"`   // where conversations are
	Compression   string `json:"compression,omitempty"`    // who summarises them
}

// maxPool bounds the setting of the pool, in bytes: ctxdir.json may come from anyone.
const maxPool = 1 << 30

// Grace returns the grace period of removed data, 0 for the default.
func (s Settings) Grace() time.Duration { return time.Duration(max(s.TrashGrace, 0)) * time.Second }

// ReadSettings reads the settings as they are now; they may have changed since the store was opened.
func (s *Store) ReadSettings() (Settings, error) {
	if s.problem != nil {
		return Settings{}, nil // the store opened without them
	}
	info, err := readStoreFile(s.FS)
	return info.Settings, Wrap(Error{Op: "read settings of", Path: s.path}, err)
}

// Configure changes the settings in ctxdir.json. Collections apply them from then on, in every process. An open store
// keeps its text threshold.
//
// Crash order: none. ctxdir.json is replaced durably: it has the old settings or the new ones.
func (s *Store) Configure(ctx context.Context, change func(*Settings) error) error {
	return Wrap(Error{Op: "configure", Path: s.path}, s.configure(ctx, change))
}

func (s *Store) configure(ctx context.Context, change func(*Settings) error) error {
	if s.ReadOnly {
		return ErrReadOnly
	}
	lock := s.FS.Lock(storeLock)
	defer lock.Close()
	if err := s.Acquire(ctx, lock); err != nil {
		return err
	}
	defer lock.Release()
	info, err := readStoreFile(s.FS)
	if err != nil {
		return err
	}
	b, err := vfs.ReadFile(s.FS, StoreFile, MaxStoreFile)
	if err != nil {
		return err
	}
	settings := info.Settings
	if err := change(&settings); err != nil {
		return err
	}
	if b, err = withSettings(message.Text(b), settings); err != nil {
		return err
	}
	if err := s.FS.Replace(StoreFile, b); err != nil {
		return err
	}
	return s.FS.SyncDir(".")
}

// withSettings returns ctxdir.json with other settings. Unknown members stay.
func withSettings(file []byte, settings Settings) ([]byte, error) {
	var all, members, known ctxfolder.Object
	if err := all.UnmarshalJSON(file); err != nil {
		return nil, err
	}
	if old := all.Get("settings"); old != nil {
		if err := members.UnmarshalJSON(old); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(settings)
	if err == nil {
		err = known.UnmarshalJSON(b)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{
		"text_threshold", "archive_after", "keep_last", "trash_grace", "cache_size", "max_tokens", "storage_mode", "compression",
	} {
		members.Set(name, known.Get(name))
	}
	if b, err = members.MarshalJSON(); err != nil {
		return nil, err
	}
	all.Set("settings", b)
	if b, err = all.MarshalJSON(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return nil, err
	}
	return append(out.Bytes(), '\n'), nil
}
