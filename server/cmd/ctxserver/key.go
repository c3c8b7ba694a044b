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
	cmd.AddCommand(a.keyNewCmd(), a.keyRotateCmd(), a.keyDropCmd(), a.keyMoveCmd())
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
If it was interrupted, run it again.

If the key is in Vault, rotate it there first: this encrypts the keys of all users with its newest version.`,
		Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withKey(cmd, func(d *server.Database) error {
				what := fmt.Sprintf("a new key. Copy %s again", a.config.MasterKey)
				if isService(a.config.MasterKey) {
					what = "the newest version of " + a.config.MasterKey
				} else if err := keyfile.Rotate(a.config.MasterKey); err != nil {
					return err
				}
				n, err := d.Rewrap(cmd.Context())
				if err != nil {
					return interrupted(err)
				}
				return a.print(map[string]any{"record": "rotated", "keys": n}, "Encrypted the keys in the database with %s", what)
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
			if isService(a.config.MasterKey) {
				return wrong("old versions of a key in Vault end there: set its min_decryption_version after ctxserver key rotate")
			}
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

func (a *app) keyMoveCmd() *cobra.Command {
	return &cobra.Command{
		Use: "move KEY", Short: "Encrypt a database with another key: that in a file, or in Vault",
		Long: `Encrypt the keys of all users, which --key encrypts, with KEY instead: a file from key new, or an address such as
hcvault://HOST/transit/keys/NAME. Conversations stay as they are. Stop the servers before, and start them with the new key.
If it was interrupted, run it again. Backups still need the old key.`,
		Example: "  ctxserver --key master.key key move hcvault://vault.example.org:8200/transit/keys/ctxserver",
		Args:    names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := masterKey(args[0])
			if err != nil {
				return err
			}
			from, err := a.oldKey()
			if err != nil {
				return err
			}
			both := func() (tink.AEAD, error) {
				old, err := from()
				if err != nil {
					return nil, err
				}
				next, err := to()
				return moving{next, old}, err
			}
			return a.withMaster(cmd, both, func(d *server.Database) error {
				n, err := d.Rewrap(cmd.Context())
				if err == nil {
					_, err = d.Verify(cmd.Context(), to)
				}
				if err != nil {
					return interrupted(err)
				}
				r := map[string]any{"record": "moved", "keys": n}
				return a.print(r, "Encrypted the keys in the database with %s. Start with --key %s from now on", args[0], args[0])
			})
		},
	}
}

func interrupted(err error) error {
	return fmt.Errorf("%w\nSome keys may be encrypted with the new one already: run it again", err)
}

// moving encrypts with one key, and decrypts with two.
type moving struct {
	tink.AEAD
	old tink.AEAD
}

func (m moving) Decrypt(sealed, ad []byte) ([]byte, error) {
	plain, err := m.AEAD.Decrypt(sealed, ad)
	if err == nil {
		return plain, nil
	}
	plain, old := m.old.Decrypt(sealed, ad)
	if old == nil {
		return plain, nil
	}
	return nil, errors.Join(err, old)
}

func (a *app) withKey(cmd *cobra.Command, f func(d *server.Database) error) error {
	master, err := a.oldKey()
	if err != nil {
		return err
	}
	return a.withMaster(cmd, master, f)
}

// oldKey is the key of the settings.
func (a *app) oldKey() (pgfs.Master, error) {
	if a.config.MasterKey == "" {
		return nil, wrong("--key is missing: the file with the key, or its address")
	}
	return masterKey(a.config.MasterKey)
}

func (a *app) withMaster(cmd *cobra.Command, master pgfs.Master, f func(d *server.Database) error) error {
	return a.withDatabase(cmd.Context(), master, func(d *server.Database) error {
		if err := d.Prepare(cmd.Context()); err != nil {
			return a.config.explain(err)
		}
		return f(d)
	})
}
