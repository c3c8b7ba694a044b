package main

import (
	"github.com/spf13/cobra"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the version",
		Example:     "  ctxtool version",
		Annotations: exits(""),
		Args:        between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if v := version(); a.json {
				return a.record(v)
			}
			return a.printf("%s\n", versionLine())
		},
	}
}
