package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/ctxdir/ctxdir/server/keyfile"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/ctxdir/ctxdir/server/vault"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// place is where users and stores are.
type place struct {
	directory server.Directory
	users     *users.Users
	stores    server.Stores
	prepare   func(ctx context.Context) error // returns once the directory is ready, or cannot become so
	maintain  func(ctx context.Context)       // once it is ready, until ctx ends
	close     func() error
}

// place opens the folder, or the database.
func (a *app) place(ctx context.Context, log *slog.Logger) (place, error) {
	c := a.config
	if c.DB == "" {
		all, err := c.openFolder()
		if err != nil {
			return place{}, err
		}
		return place{all, all, server.Folders(c.Dir), func(context.Context) error { return nil }, func(context.Context) {}, all.Close}, nil
	}
	if c.MasterKey == "" {
		return place{}, wrong("--db needs --key: what is in the database is encrypted; make one with ctxserver key new FILE")
	}
	master, err := masterKey(c.MasterKey)
	if err != nil {
		return place{}, err
	}
	d, err := c.openDatabase(ctx, master, log)
	if err != nil {
		return place{}, err
	}
	prepare := func(ctx context.Context) error { return c.prepare(ctx, d, log) }
	maintain := func(ctx context.Context) { c.maintain(ctx, d, log) }
	return place{d, d.Users(), d, prepare, maintain, d.Close}, nil
}

// maintain sweeps the object store, if there is one.
func (c *config) maintain(ctx context.Context, d *server.Database, log *slog.Logger) {
	d.SweepDaily(ctx, time.Duration(c.BlobsGrace), func(s pgfs.Swept, err error) {
		if err != nil {
			log.Warn("the sweep of the object store failed", "error", err)
			return
		}
		log.Info("swept the object store", "objects", s.Objects, "orphans", s.Orphans, "removed", s.Removed)
	})
}

func (c *config) openFolder() (*users.Users, error) {
	if c.Dir == "" {
		return nil, wrong("--dir is missing: the folder for users and their conversations; or --db")
	}
	return users.OpenFiles(c.Dir)
}

// isService reports whether a key is in a service, not in a file.
func isService(key string) bool { return strings.Contains(key, "://") }

// masterKey returns the key in a file that has to be there, or the one at an address.
func masterKey(key string) (pgfs.Master, error) {
	if isService(key) {
		m, err := vault.Open(key)
		if err != nil {
			return nil, wrong("--key: %w", err)
		}
		return m, nil
	}
	if _, err := keyfile.Master(key); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w\nIf the database is new, make a key with: ctxserver key new %s\n"+
			"Otherwise bring back the one that it is encrypted with", err, key)
	} else if err != nil {
		return nil, err
	}
	return func() (tink.AEAD, error) { return keyfile.Master(key) }, nil
}

func (c *config) openDatabase(ctx context.Context, master pgfs.Master, log *slog.Logger) (*server.Database, error) {
	var b bucket.Bucket
	if c.Blobs != "" {
		var err error
		if b, err = bucket.Open(c.Blobs, bucket.Credentials{KeyID: c.BlobsKeyID, Secret: c.BlobsSecret}); err != nil {
			return nil, wrong("--blobs: %w", err)
		}
	}
	d, err := server.NewDatabase(ctx, c.DB, server.DatabaseOptions{
		Master:  master,
		Apart:   c.Apart,
		Bucket:  b,
		Failed:  func(err error) { log.Error("a request to the object store failed", "error", err) },
		Damaged: func(err error) { log.Error("damage in the database", "error", err) },
	})
	if err != nil {
		return nil, usageError{err}
	}
	return d, nil
}

// prepare makes the tables, as soon as the database answers.
func (c *config) prepare(ctx context.Context, d *server.Database, log *slog.Logger) error {
	for {
		err := d.Prepare(ctx)
		if err == nil || !server.IsUnreachable(err) || ctx.Err() != nil {
			return c.explain(err)
		}
		log.Warn("not ready: the database, the object store or the service of the key does not answer; trying again", "error", c.explain(err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// explain says what to do about a database that something does not fit.
func (c *config) explain(err error) error {
	switch {
	case errors.Is(err, pgfs.ErrMaster):
		return fmt.Errorf("%w\nLook whether Vault answers and is unsealed, and has the key %s for $VAULT_TOKEN, or for the token in "+
			"$VAULT_TOKEN_FILE; nothing has been changed", err, c.MasterKey)
	case errors.Is(err, pgfs.ErrKey):
		return fmt.Errorf("%w: %s is another key; start with the one that was used before, nothing has been changed", err, c.MasterKey)
	case errors.Is(err, pgfs.ErrNoBucket):
		return fmt.Errorf("%w: set --blobs to the address that was used before; nothing has been changed", err)
	case errors.Is(err, pgfs.ErrBucket):
		return fmt.Errorf("%w: set --blobs to the address that was used before, or copy all objects to %s first; nothing has been changed",
			err, c.Blobs)
	}
	return err
}

// withUsers runs f with the users.
func (a *app) withUsers(ctx context.Context, f func(all *users.Users) error) error {
	if a.config.DB == "" {
		all, err := a.config.openFolder()
		if err != nil {
			return err
		}
		return errors.Join(f(all), all.Close())
	}
	return a.withDatabase(ctx, nil, func(d *server.Database) error { return f(d.Users()) })
}

// withDatabase runs f with a database whose tables are there. What needs no key has no master.
func (a *app) withDatabase(ctx context.Context, master pgfs.Master, f func(d *server.Database) error) error {
	if a.config.DB == "" {
		return wrong("--db is missing: the address of the database")
	}
	d, err := a.config.openDatabase(ctx, master, slog.New(slog.NewJSONHandler(a.stderr, nil)))
	if err != nil {
		return err
	}
	if err = d.Migrate(ctx); err == nil {
		err = f(d)
	}
	return errors.Join(err, d.Close())
}
