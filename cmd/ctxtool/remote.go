package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/compress"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/privacy"
	"github.com/spf13/cobra"
)

// remoteFlags say whether a model behind a server helps, and which.
type remoteFlags struct {
	url, model, mode string
}

// add adds the flags. what is what the model does with what, and verb the same in a word.
func (r *remoteFlags) add(cmd *cobra.Command, what, verb string) {
	cmd.Flags().StringVar(&r.url, "remote", "", "let the model at `URL` "+what)
	cmd.Flags().StringVar(&r.model, "model", "", "use the model `MODEL` of the remote server")
	modes := strings.Join(compress.Modes, ", ")
	cmd.Flags().StringVar(&r.mode, "extraction", "",
		verb+" by `MODE`: "+modes+" (default with --remote: that of ctxtool config, or remote)")
	_ = cmd.RegisterFlagCompletionFunc("extraction", cobra.FixedCompletions(compress.Modes, cobra.ShellCompDirectiveNoFileComp))
}

func (r *remoteFlags) parse(cmd *cobra.Command) error {
	switch {
	case r.mode != "" && !slices.Contains(compress.Modes, r.mode):
		return usage(cmd, "--extraction: unknown mode %q; use one of: %s", r.mode, strings.Join(compress.Modes, ", "))
	case r.url == "" && r.model != "":
		return usage(cmd, "--model needs --remote")
	case r.url == "" && r.mode != "" && r.mode != compress.ModeLocal:
		return usage(cmd, "--extraction %s needs --remote", r.mode)
	}
	return nil
}

// resolve returns the mode of extraction, empty if no flag asks for one, and the endpoint of a mode that needs one.
// What the endpoint gets has no name that the store knows.
func (r *remoteFlags) resolve(ctx context.Context, s *ctxdir.Store) (mode string, e *compress.Endpoint, err error) {
	if mode = r.mode; mode == "" && r.url != "" {
		set, err := s.Settings()
		if err != nil {
			return "", nil, err
		}
		if mode = cmp.Or(set.Extraction, compress.ModeRemote); mode == compress.ModeLocal {
			return "", nil, errors.New("the settings of the store allow only local extraction; pass --extraction remote to send text anyway")
		}
	}
	if mode == "" || mode == compress.ModeLocal {
		return mode, nil, nil
	}
	names, err := moment.KnownNames(ctx, s)
	if err != nil {
		return "", nil, err
	}
	return mode, &compress.Endpoint{URL: r.url, Model: r.model, Filter: privacy.NewFilter(names...)}, nil
}

// doneHere notes that the server failed, and what it was asked for was done on this machine.
func (a *app) doneHere(err error) {
	a.warn(errorRecord{Error: err.Error(), Hint: "it was done locally instead"})
}
