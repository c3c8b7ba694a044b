package storefile

import (
	"bytes"
	"encoding/json"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

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
		"modes", "remotes",
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
