package main

import (
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir/server"
	"github.com/ctxdir/ctxdir/server/keyfile"
	"github.com/ctxdir/ctxdir/server/pgfs"
	"github.com/spf13/cobra"
	"github.com/tink-crypto/tink-go/v2/tink"
)

func (a *app) keyCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Make and rotate the key that a database is encrypted with"}
	cmd.AddCommand(a.keyNewCmd(), a.keyRotateCmd(), a.keyDropCmd())
	return cmd
}

func (a *app) keyNewCmd() *cobra.Command {
	return &cobra.Command{
		Use: "new FILE", Short: "Make a new key",
		Long: `Make a new key. Keep a copy of the file where no backup of the database is: whoever has both can read everything, and
without the file nobody ever can.`,
		Args: names(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := keyfile.New(args[0]); err != nil {
				return err
			}
			r := map[string]string{"record": "key", "file": args[0]}
			return a.print(r, "Made a key. Keep a copy of %s: nothing can be read without it", args[0])
		},
	}
}

func (a *app) keyRotateCmd() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Use a new key from now on",
		Long: `Add a new key to the file --key, and encrypt the keys of all users with it. Conversations stay as they are, so this is
fast, and servers go on. The file still has the old keys, which backups may need; key drop deletes them.
If it was interrupted, run it again.`,
		Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withKey(cmd, func(d *server.Database) error {
				if err := keyfile.Rotate(a.config.MasterKey); err != nil {
					return err
				}
				n, err := d.Rewrap(cmd.Context())
				if err != nil {
					return err
				}
				return a.print(map[string]any{"record": "rotated", "keys": n}, "Encrypted the keys in the database with a new key. Copy %s again",
					a.config.MasterKey)
			})
		},
	}
}

func (a *app) keyDropCmd() *cobra.Command {
	return &cobra.Command{
		Use: "drop", Short: "Delete old keys after a rotation",
		Long: `Delete all keys but the newest from the file --key, if that one opens everything in the database. Backups that were made
before the rotation cannot be read any more then.`,
		Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withKey(cmd, func(d *server.Database) error {
				_, err := d.Verify(cmd.Context(), func() (tink.AEAD, error) { return keyfile.Newest(a.config.MasterKey) })
				if errors.Is(err, pgfs.ErrKey) {
					return fmt.Errorf("something still needs an old key; run ctxserver key rotate again: %w", err)
				}
				if err == nil {
					err = keyfile.DropOld(a.config.MasterKey)
				}
				if err != nil {
					return err
				}
				return a.print(map[string]string{"record": "dropped"}, "Deleted the old keys from %s", a.config.MasterKey)
			})
		},
	}
}

func (a *app) withKey(cmd *cobra.Command, f func(d *server.Database) error) error {
	if a.config.MasterKey == "" {
		return wrong("--key is missing: the file with the key")
	}
	return a.withDatabase(cmd.Context(), func(d *server.Database) error {
		if err := d.Prepare(cmd.Context()); err != nil {
			return a.config.explain(err)
		}
		return f(d)
	})
}
