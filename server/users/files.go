package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

const (
	lockFile = "users.lock"
	userFile = "user.json"
	storeDir = "store"
)

// maxFile bounds user.json, in bytes.
const maxFile = 1 << 20

// marker is the format of user.json.
const marker = "user/1"

// file is user.json.
type file struct {
	Ctxdir string `json:"ctxdir"`
	User
}

// files keeps users in a folder: users/ID/user.json, beside the store of each. Removed users are in removed/.
//
// Crash order: user.json is replaced as a whole and durable, before a call returns; a new folder of a user is durable with it.
// A folder without the file is that of no user, and the next new user has another id. A user moves by one rename. One who is
// erased loses the file last: what an interruption left can be erased again.
type files struct{ dir vfs.FS }

// OpenFiles opens users in a folder, which it makes if there is none. The store of a user is at [StorePath].
func OpenFiles(path string) (*Users, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	dir, err := vfs.OS(path)
	if err != nil {
		return nil, err
	}
	for _, in := range []place{present, removed, invited} {
		if err = dir.Mkdir(string(in)); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, dir.Close())
		}
	}
	if err := dir.SyncDir("."); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Users{files{dir}, time.Now}, nil
}

// StorePath returns the path of the store of a user, relative to the folder of the users.
func StorePath(id uuid.UUID) string { return folder(present, id) + "/" + storeDir }

func folder(in place, id uuid.UUID) string { return string(in) + "/" + id.String() }

func (x files) close() error { return x.dir.Close() }

func (x files) ready(context.Context) error {
	_, err := x.dir.Lstat(string(present))
	return err
}

func (x files) list(_ context.Context, in place) (all []User, err error) {
	for e, err := range x.dir.ReadDir(string(in)) {
		if err != nil {
			return nil, err
		}
		id, err := uuid.Parse(e.Name())
		if err != nil || id.String() != e.Name() {
			continue
		}
		u, err := x.read(context.Background(), in, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

func (x files) read(_ context.Context, in place, id uuid.UUID) (User, error) {
	at := folder(in, id) + "/" + userFile
	b, err := vfs.ReadFile(x.dir, at, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return User{}, fmt.Errorf("user %s: %w", id, ErrNotFound)
	}
	var f file
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err == nil && (f.Ctxdir != marker || f.ID != id) {
		err = fmt.Errorf("%s of user %s was expected", marker, id)
	}
	if err != nil {
		return User{}, fmt.Errorf("read %s: %w", at, err)
	}
	return f.User, nil
}

func (x files) alone(ctx context.Context, f func(w writer) error) error {
	l := x.dir.Lock(lockFile)
	if err := l.Acquire(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	return errors.Join(f(fileWriter{x}), l.Close())
}

type fileWriter struct{ files }

func (w fileWriter) list(in place) ([]User, error) { return w.files.list(context.Background(), in) }

func (w fileWriter) add(u *User) error    { return w.make(present, u) }
func (w fileWriter) invite(u *User) error { return w.make(invited, u) }

func (w fileWriter) make(in place, u *User) error {
	if err := w.dir.Mkdir(folder(in, u.ID)); err != nil {
		return err
	}
	if err := w.put(in, u); err != nil {
		return err
	}
	return w.dir.SyncDir(string(in))
}

// accept has the user in the folder of the invitation first. As long as it has not moved, the invitation is open.
func (w fileWriter) accept(u *User) error {
	if err := w.put(invited, u); err != nil {
		return err
	}
	if err := w.move(u.ID, invited, present); err != nil {
		return err
	}
	u.Invitation = nil
	return w.replace(u)
}

func (w fileWriter) uninvite(id uuid.UUID) error {
	if err := vfs.RemoveAll(w.dir, folder(invited, id)); err != nil {
		return err
	}
	return w.dir.SyncDir(string(invited))
}

func (w fileWriter) replace(u *User) error { return w.put(present, u) }

func (w fileWriter) put(place place, u *User) error {
	b, err := json.MarshalIndent(file{marker, *u}, "", "  ")
	if err != nil {
		return err
	}
	in := folder(place, u.ID)
	if err := w.dir.Replace(in+"/"+userFile, append(b, '\n')); err != nil {
		return err
	}
	return w.dir.SyncDir(in)
}

func (w fileWriter) move(id uuid.UUID, from, to place) error {
	if err := w.dir.RenameNew(folder(from, id), folder(to, id)); err != nil {
		return err
	}
	return errors.Join(w.dir.SyncDir(string(to)), w.dir.SyncDir(string(from)))
}

func (w fileWriter) erase(id uuid.UUID) error {
	at := folder(removed, id)
	if err := vfs.RemoveAll(w.dir, at+"/"+storeDir); err != nil {
		return err
	}
	if err := w.dir.SyncDir(at); err != nil {
		return err
	}
	if err := vfs.RemoveAll(w.dir, at); err != nil {
		return err
	}
	return w.dir.SyncDir(string(removed))
}
