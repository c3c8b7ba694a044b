package storefile

import (
	"bytes"
	"encoding/json"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Settings are the settings in ctxdir.json, for every program that uses the store. A number of 0, or below, is as good
// as a missing one, except for TextThreshold.
type Settings struct {
	TextThreshold *int64 `json:"text_threshold,omitempty"` // see [engine.WithTextThreshold]
	ArchiveAfter  int64  `json:"archive_after,omitempty"`  // seconds since its commit after which a message is archived
	KeepLast      int64  `json:"keep_last,omitempty"`      // the newest messages of each branch, which are not archived
	TrashGrace    int64  `json:"trash_grace,omitempty"`    // seconds for which removed data stays
	CacheSize     int64  `json:"cache_size,omitempty"`     // see [engine.WithPool]
	MaxTokens     int64  `json:"max_tokens,omitempty"`     // of an assembled context
	StorageMode   string `json:"storage_mode,omitempty"`   // where conversations are
	Extraction    string `json:"extraction,omitempty"`     // what extracts the essence of conversations
}

// Grace returns the grace period of removed data, 0 for the default.
func (s Settings) Grace() time.Duration { return time.Duration(max(s.TrashGrace, 0)) * time.Second }

// Configure changes the settings in ctxdir.json, durably. The caller holds the store's lock.
func Configure(fsys vfs.FS, change func(*Settings) error) error {
	info, err := Read(fsys)
	if err != nil {
		return err
	}
	b, err := vfs.ReadFile(fsys, Name, maxSize)
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
	if err := fsys.Replace(Name, b); err != nil {
		return err
	}
	return fsys.SyncDir(".")
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
		"text_threshold", "archive_after", "keep_last", "trash_grace", "cache_size", "max_tokens", "storage_mode", "extraction",
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
