package main

import (
	"time"

	"github.com/ctxdir/ctxdir/server"
	"github.com/spf13/cobra"
)

func (a *app) blobsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "blobs", Short: "Look after the object store", Args: names(0),
		RunE: func(*cobra.Command, []string) error { return wrong("usage: ctxserver blobs sweep") },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "sweep", Short: "Remove objects that nothing needs any more",
		Long: `Remove objects of --blobs that no row of the database has named for the time --blobs-grace. One of the servers does it
once a day by itself. It may run while servers do. An object is removed at the second sweep at the earliest, unless the time is 0:
the first one only notes that nothing names it.`,
		Args: names(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.config.Blobs == "" {
				return wrong("--blobs is missing: the address of the object store")
			}
			return a.withKey(cmd, func(d *server.Database) error {
				s, err := d.Sweep(cmd.Context(), time.Duration(a.config.BlobsGrace))
				if err != nil {
					return err
				}
				r := map[string]any{"record": "swept", "objects": s.Objects, "orphans": s.Orphans, "removed": s.Removed}
				return a.print(r, "Looked at %d objects; nothing names %d of them, and %d were removed", s.Objects, s.Orphans, s.Removed)
			})
		},
	})
	return cmd
}
