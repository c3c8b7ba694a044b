package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// The names in the folder of a server.
const (
	usersDir   = "users"
	removedDir = "removed"
	lockFile   = "users.lock"
	userFile   = "user.json"
	// StoreDir is the folder with the store of a user, in the user's folder.
	StoreDir = "store"
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

// Files keeps users in a folder: users/ID/user.json, beside the store of each. Removed users are in removed/.
//
// Crash order: user.json is replaced as a whole and durable, before a call returns; a new folder of a user is durable with it.
// A folder without the file is that of no user, and the next new user has another id.
type Files struct {
	dir vfs.FS
	now func() time.Time
}

// OpenFiles opens a folder, and makes it if it does not exist.
func OpenFiles(path string) (*Files, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	dir, err := vfs.OS(path)
	if err != nil {
		return nil, err
	}
	x := &Files{dir: dir, now: time.Now}
	for _, name := range []string{usersDir, removedDir} {
		if err = dir.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(err, dir.Close())
		}
	}
	if err := dir.SyncDir("."); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return x, nil
}

// Close closes the folder.
func (x *Files) Close() error { return x.dir.Close() }

// Ready returns an error as long as users cannot be read.
func (x *Files) Ready(context.Context) error {
	_, err := x.dir.Lstat(usersDir)
	return err
}

// Authorize returns what a token stands for. The error wraps [ErrUnauthorized].
func (x *Files) Authorize(_ context.Context, token string) (Grant, error) {
	id, of, secret, ok := parse(token)
	if !ok {
		return Grant{}, ErrUnauthorized
	}
	u, err := x.read(usersDir, id)
	if errors.Is(err, ErrNotFound) {
		return Grant{}, ErrUnauthorized
	}
	if err != nil {
		return Grant{}, err
	}
	return u.grant(of, secret, x.now())
}

// List returns the users, ordered by name.
func (x *Files) List(context.Context) ([]User, error) { return x.list(usersDir) }

// Removed returns the users that were removed, ordered by name.
func (x *Files) Removed(context.Context) ([]User, error) { return x.list(removedDir) }

func (x *Files) list(in string) (all []User, err error) {
	for e, err := range x.dir.ReadDir(in) {
		if err != nil {
			return nil, err
		}
		id, err := uuid.Parse(e.Name())
		if err != nil || id.String() != e.Name() {
			continue
		}
		u, err := x.read(in, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Find returns the user with a name. The error wraps [ErrNotFound].
func (x *Files) Find(_ context.Context, name string) (User, error) { return x.find(usersDir, name) }

func (x *Files) find(in, name string) (User, error) {
	all, err := x.list(in)
	if err != nil {
		return User{}, err
	}
	for _, u := range all {
		if u.Name == name {
			return u, nil
		}
	}
	return User{}, fmt.Errorf("user %q: %w", name, ErrNotFound)
}

// Add makes a user. The error wraps [ErrExists] if the name is taken.
func (x *Files) Add(ctx context.Context, name string) (u User, err error) {
	if err := CheckName(name); err != nil {
		return u, err
	}
	err = x.locked(ctx, func() error {
		if _, err := x.find(usersDir, name); !errors.Is(err, ErrNotFound) {
			return errors.Join(err, fmt.Errorf("user %q %w", name, ErrExists))
		}
		u = User{ID: uuid.New(), Name: name, CreatedAt: x.now().UTC().Truncate(time.Second)}
		if err := x.dir.Mkdir(folder(usersDir, u.ID)); err != nil {
			return err
		}
		if err := x.write(&u); err != nil {
			return err
		}
		return x.dir.SyncDir(usersDir)
	})
	return u, err
}

// Remove takes a user away with all conversations, which stay in the folder of removed users. The tokens count no more.
func (x *Files) Remove(ctx context.Context, name string) (u User, err error) {
	return x.move(ctx, name, usersDir, removedDir)
}

// Restore brings a removed user back. The error wraps [ErrExists] if another one has the name now.
func (x *Files) Restore(ctx context.Context, name string) (u User, err error) {
	return x.move(ctx, name, removedDir, usersDir)
}

// move renames the folder of a user.
//
// Crash order: the rename is one step; both folders are durable before the call returns.
func (x *Files) move(ctx context.Context, name, from, to string) (u User, err error) {
	err = x.locked(ctx, func() error {
		if u, err = x.find(from, name); err != nil {
			return err
		}
		if _, err := x.find(to, name); to == usersDir && !errors.Is(err, ErrNotFound) {
			return errors.Join(err, fmt.Errorf("user %q %w", name, ErrExists))
		}
		return errors.Join(x.dir.RenameNew(folder(from, u.ID), folder(to, u.ID)), x.dir.SyncDir(to), x.dir.SyncDir(from))
	})
	return u, err
}

// NewToken makes a token of a user. Only the caller ever has it.
func (x *Files) NewToken(ctx context.Context, name string, o TokenOptions) (token string, t Token, err error) {
	if o.Scope == "" {
		o.Scope = Write
	}
	if err := o.check(); err != nil {
		return "", t, err
	}
	err = x.change(ctx, name, func(u *User) error {
		now := x.now()
		if u.dropExpired(now); len(u.Tokens) >= maxTokens {
			return fmt.Errorf("%w: user %q has %d tokens, the most there can be", ErrInvalid, name, len(u.Tokens))
		}
		token, t = newToken(u.ID, o, now)
		u.Tokens = append(u.Tokens, t)
		return nil
	})
	return token, t, err
}

// Revoke ends a token of a user, by its id. The error wraps [ErrNotFound].
func (x *Files) Revoke(ctx context.Context, name, id string) error {
	return x.change(ctx, name, func(u *User) error {
		n := len(u.Tokens)
		if u.Tokens = slices.DeleteFunc(u.Tokens, func(t Token) bool { return t.ID == id }); len(u.Tokens) == n {
			return fmt.Errorf("token %q of user %q: %w", id, name, ErrNotFound)
		}
		return nil
	})
}

func (x *Files) change(ctx context.Context, name string, change func(u *User) error) error {
	return x.locked(ctx, func() error {
		u, err := x.find(usersDir, name)
		if err != nil {
			return err
		}
		if err := change(&u); err != nil {
			return err
		}
		return x.write(&u)
	})
}

func (x *Files) locked(ctx context.Context, f func() error) error {
	l := x.dir.Lock(lockFile)
	if err := l.Acquire(ctx); err != nil {
		return errors.Join(err, l.Close())
	}
	return errors.Join(f(), l.Close())
}

func folder(in string, id uuid.UUID) string { return in + "/" + id.String() }

func (x *Files) read(in string, id uuid.UUID) (User, error) {
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

func (x *Files) write(u *User) error {
	b, err := json.MarshalIndent(file{marker, *u}, "", "  ")
	if err != nil {
		return err
	}
	in := folder(usersDir, u.ID)
	if err := x.dir.Replace(in+"/"+userFile, append(b, '\n')); err != nil {
		return err
	}
	return x.dir.SyncDir(in)
}

// StorePath returns the path of the store of a user, relative to the folder of the server.
func StorePath(id uuid.UUID) string { return folder(usersDir, id) + "/" + StoreDir }
