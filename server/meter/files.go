package meter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
)

// Files keeps rows in the folder of the users: usage.jsonl beside the store of each, a line of JSON for a row.
//
// Crash order: a request is one write, and then synced. A line that is not whole is the end of a write that was not
// acknowledged: readers skip it, and the next write begins with a line break.
type Files string

func (dir Files) path(user uuid.UUID) string {
	return filepath.Join(string(dir), filepath.Dir(filepath.FromSlash(users.StorePath(user))), "usage.jsonl")
}

// Add implements [Log].
func (dir Files) Add(_ context.Context, user uuid.UUID, rows []Row) error {
	b := []byte("\n")
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
	}
	// The folder of a removed user is elsewhere: this one must exist.
	f, err := os.OpenFile(dir.path(user), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncFolder(filepath.Dir(dir.path(user)))
	}
	return errors.Join(err, f.Close())
}

// syncFolder makes the name of a new file durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// List implements [Log].
func (dir Files) List(_ context.Context, user uuid.UUID) (all []Row, err error) {
	f, err := os.Open(dir.path(user))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	seen := map[uuid.UUID]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r Row
		if len(bytes.TrimSpace(lines.Bytes())) == 0 || json.Unmarshal(lines.Bytes(), &r) != nil || seen[r.ID] {
			continue
		}
		seen[r.ID] = true
		all = append(all, r)
	}
	return all, lines.Err()
}
