package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

// settingsRecord are the settings of a store, with the names and units of ctxdir.json.
type settingsRecord struct {
	Record        string `json:"record"`
	TextThreshold int64  `json:"text_threshold"`
	ArchiveAfter  int64  `json:"archive_after"` // seconds
	KeepLast      int64  `json:"keep_last"`
	TrashGrace    int64  `json:"trash_grace"` // seconds
}

// storeSetting is a setting of a store. An empty text is its default.
type storeSetting struct {
	name  string
	show  func(ctxdir.Settings) string
	parse func(text string, s *ctxdir.Settings) error
}

var storeSettings = []storeSetting{
	{"archive_after", func(s ctxdir.Settings) string { return hours(s.ArchiveAfter) },
		func(text string, s *ctxdir.Settings) error { return parseDuration(text, &s.ArchiveAfter) }},
	{"keep_last", func(s ctxdir.Settings) string { return strconv.FormatInt(s.KeepLast, 10) },
		func(text string, s *ctxdir.Settings) error { return parseNumber(text, 0, &s.KeepLast) }},
	{"text_threshold", func(s ctxdir.Settings) string { return strconv.FormatInt(s.TextThreshold, 10) },
		func(text string, s *ctxdir.Settings) error {
			return parseNumber(text, defaultThreshold, &s.TextThreshold)
		}},
	{"trash_grace", func(s ctxdir.Settings) string { return hours(graceOf(s)) },
		func(text string, s *ctxdir.Settings) error { return parseDuration(text, &s.TrashGrace) }},
}

func (a *app) configCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "config [SETTING=VALUE…]",
		Short: "Show or change the settings of the store",
		Long: `Show the settings in ctxdir.json, or change them for every program that uses the store. SETTING=
without a value restores the default.

  archive_after   archive messages that were stored at least this long ago, such
                  as 4320h; 0 for none
  keep_last       do not archive the newest N messages of each branch; without
                  archive_after, archive all others
  text_threshold  move texts of at least N bytes to blobs; 0 moves all, -1 none
  trash_grace     how long removed branches, contexts and blobs can be restored

"ctxtool gc" archives, and so does the daily collection of the verbs that write. Messages move to a
pack as with "ctxtool archive", but their payloads stay blobs.`,
		Example:           "  ctxtool config\n  ctxtool config archive_after=4320h keep_last=100",
		Annotations:       exits("", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := parseSettings(cmd, args)
			if err != nil {
				return err
			}
			var opts []ctxdir.Option
			if len(args) == 0 {
				opts = append(opts, ctxdir.WithReadOnly())
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error { return a.config(cmd.Context(), s, changes) }, opts...)
		},
	}
}

// parseSettings returns the changes that the arguments ask for. Of a repeated setting the last counts.
func parseSettings(cmd *cobra.Command, args []string) (changes []func(*ctxdir.Settings), err error) {
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		i := slices.IndexFunc(storeSettings, func(s storeSetting) bool { return s.name == name })
		switch {
		case !ok:
			return nil, usage(cmd, "expected SETTING=VALUE, got %q", arg)
		case i < 0:
			return nil, usage(cmd, "unknown setting %q", name)
		}
		parse := storeSettings[i].parse
		if err := parse(text, &ctxdir.Settings{}); err != nil {
			return nil, usage(cmd, "%s: %v", name, err)
		}
		changes = append(changes, func(s *ctxdir.Settings) { _ = parse(text, s) })
	}
	return changes, nil
}

func (a *app) config(ctx context.Context, s *ctxdir.Store, changes []func(*ctxdir.Settings)) error {
	if len(changes) > 0 {
		err := s.Configure(ctx, func(settings *ctxdir.Settings) error {
			for _, change := range changes {
				change(settings)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	settings, err := s.Settings()
	if err != nil {
		return err
	}
	if a.json {
		return a.record(settingsRecord{
			"settings", settings.TextThreshold, int64(settings.ArchiveAfter / time.Second), settings.KeepLast,
			int64(graceOf(settings) / time.Second),
		})
	}
	for _, x := range storeSettings {
		if err := a.printf("%-14s  %s\n", x.name, x.show(settings)); err != nil {
			return err
		}
	}
	return nil
}

// graceOf is the grace period that applies.
func graceOf(s ctxdir.Settings) time.Duration {
	if s.TrashGrace == 0 {
		return defaultGrace
	}
	return s.TrashGrace
}

// hours is a duration in hours, if it is a number of hours.
func hours(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return d.String()
}

func parseDuration(text string, into *time.Duration) error {
	*into = 0
	if text == "" || text == "0" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration, such as 720h", text)
	}
	*into = d
	return nil
}

func parseNumber(text string, ifEmpty int64, into *int64) error {
	*into = ifEmpty
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 && ifEmpty == 0 {
		return fmt.Errorf("%q is not a number", text)
	}
	*into = n
	return nil
}
