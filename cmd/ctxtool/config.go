package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

// settingRecord is a setting of a store, with the name and unit of ctxdir.json.
type settingRecord struct {
	Record string `json:"record"`
	Key    string `json:"key"`
	Value  any    `json:"value"` // a number, bytes, seconds, or a name
}

var storeSettings = []storeSetting{
	durationSetting("archive_after", func(s *ctxdir.Settings) *time.Duration { return &s.ArchiveAfter }, 0),
	sizeSetting("cache_size", func(s *ctxdir.Settings) *int64 { return &s.CacheSize }, defaultCache),
	nameSetting("extraction", func(s *ctxdir.Settings) *string { return &s.Extraction },
		ctxdir.ExtractLocal, ctxdir.ExtractRemote, ctxdir.ExtractHybrid),
	numberSetting("keep_last", func(s *ctxdir.Settings) *int64 { return &s.KeepLast }, 0, 0),
	numberSetting("max_tokens", func(s *ctxdir.Settings) *int64 { return &s.MaxTokens }, 0, ctxdir.DefaultMaxTokens),
	nameSetting("storage_mode", func(s *ctxdir.Settings) *string { return &s.StorageMode }, ctxdir.StorageLocal, ctxdir.StorageServer),
	numberSetting("text_threshold", func(s *ctxdir.Settings) *int64 { return &s.TextThreshold }, defaultThreshold, 0),
	durationSetting("trash_grace", func(s *ctxdir.Settings) *time.Duration { return &s.TrashGrace }, defaultGrace),
}

// defaultCache is the library's bound of messages in memory, in bytes.
const defaultCache = 64 << 20

func (a *app) configCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "config [KEY [VALUE] | KEY=VALUE…]",
		Short: "Show or change the settings of the store",
		Long: `Show the settings in ctxdir.json, or change them for every program that uses the store. An empty
VALUE restores the default.

  archive_after   archive messages that were stored at least this long ago, such
                  as 4320h; 0 for none
  cache_size      the size of each of two caches, such as 100MB: loaded
                  messages in memory, and assembled contexts on disk
  extraction      extract moments and summarise by rules ("local"), by a model
                  behind an endpoint ("remote"), or by rules where it fails
                  ("hybrid")
  keep_last       do not archive the newest N messages of each branch; without
                  archive_after, archive all others
  max_tokens      the budget of an assembled context
  storage_mode    who else may hold conversations, see "ctxtool mode": "local"
                  or "server"
  text_threshold  move texts of at least N bytes to blobs; 0 moves all, -1 none
  trash_grace     how long removed branches, contexts and blobs can be restored

"ctxtool gc" archives as "ctxtool archive" does, and so does the daily collection of the verbs that
write.`,
		Example:           "  ctxtool config\n  ctxtool config keep_last 100\n  ctxtool config archive_after=4320h keep_last=100",
		Annotations:       exits("", ofStores...),
		Args:              between(0, -1),
		ValidArgsFunction: completeSettings,
		RunE: func(cmd *cobra.Command, args []string) error {
			only := ""
			switch {
			case len(args) == 1 && !strings.Contains(args[0], "="):
				only, args = args[0], nil
				if !slices.Contains(settingNames(), only) {
					return badArgument(listSettings, "unknown setting %q", only)
				}
			case len(args) == 2 && !strings.Contains(args[0], "="):
				args = []string{args[0] + "=" + args[1]}
			}
			changes, err := parseSettings(cmd, args)
			if err != nil {
				return err
			}
			var opts []ctxdir.Options
			if len(args) == 0 {
				opts = append(opts, ctxdir.Options{ReadOnly: true})
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error { return a.config(cmd.Context(), s, only, changes) }, opts...)
		},
	}
}

func settingNames() (names []string) {
	for _, s := range storeSettings {
		names = append(names, s.name)
	}
	return names
}

func completeSettings(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return settingNames(), cobra.ShellCompDirectiveNoFileComp
}

// parseSettings returns the changes that the arguments ask for. Of a repeated setting the last counts.
func parseSettings(cmd *cobra.Command, args []string) (changes []func(*ctxdir.Settings), err error) {
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		i := slices.Index(settingNames(), name)
		switch {
		case !ok:
			return nil, usage(cmd, "expected KEY=VALUE, got %q", arg)
		case i < 0:
			return nil, badArgument(listSettings, "unknown setting %q", name)
		}
		parse := storeSettings[i].parse
		if err := parse(text, &ctxdir.Settings{}); err != nil {
			return nil, usage(cmd, "%s: %v", name, err)
		}
		changes = append(changes, func(s *ctxdir.Settings) { _ = parse(text, s) })
	}
	return changes, nil
}

// config changes settings, and shows all or only one.
func (a *app) config(ctx context.Context, s *ctxdir.Store, only string, changes []func(*ctxdir.Settings)) error {
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
	for _, x := range storeSettings {
		if only != "" && x.name != only {
			continue
		}
		if err := a.result(settingRecord{"setting", x.name, x.value(&settings)}, "%-14s  %s", x.name, x.show(&settings)); err != nil {
			return err
		}
	}
	return nil
}

// listSettings is the hint for an unknown setting.
const listSettings = `run "ctxtool config" to list the settings`
