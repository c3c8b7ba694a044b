package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

type erasedRecord struct {
	Record  string `json:"record"` // "erased", or "foreign" for a file that is left alone
	Context string `json:"context"`
	ID      string `json:"id,omitempty"` // none for a payload
	Path    string `json:"path"`         // in the store
	Bytes   int64  `json:"bytes"`
	Reason  string `json:"reason"`
	DryRun  bool   `json:"dry_run,omitempty"`
	With    string `json:"with,omitempty"` // the message to erase that this one repeats
}

type unexaminedRecord struct {
	Record  string `json:"record"`
	Context string `json:"context"`
	ID      string `json:"id"`
	Reason  string `json:"reason"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

func (a *app) eraseCmd() *cobra.Command {
	var o ctxdir.EraseOptions
	var name string
	cmd := &cobra.Command{
		Use:   "erase CONTEXT MESSAGE…",
		Short: "Remove messages for good",
		Long: `Remove every version of messages for good: from message files, logs, segments and the trash,
including copies of the context there, and from payloads that nothing else refers to. Their
positions remain, and show as erased. This cannot be undone. MESSAGE is a position, an id, or a
unique prefix of an id; digits alone are a position.

erase also removes what repeats a message: moments made from it, records with the same text that an
import stored beside it, and a title that the import made from it. --dry-run lists all of them. If a
message that may be one of them cannot be read, the exit status is 3, and the next erase in the
context examines it again.

erase does not reach anything outside the store. Inside, it does not reach other contexts, titles
that a tool or a person wrote, and system prompts, even if they repeat a message. It reports, but
does not remove, foreign files in the store that contain a message, such as a copy that a person made.`,
		Example: `  ctxtool erase 7c2f 12 --shared --dry-run
  ctxtool erase 7c2f 0197f3c2-7a1e`,
		Annotations:       exits("could not examine a message that may repeat an erased one", ofStores...),
		Args:              between(2, -1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			refs, err := parseMessageRefs(args[1:])
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *ctxdir.Store) error {
				c, err := resolve(s, args[0])
				if err != nil {
					return err
				}
				ids, err := idsOf(cmd.Context(), s, c, name, refs)
				if err != nil {
					return err
				}
				o.DryRun = a.dryRun
				if a.asks() {
					if err := a.showAlong(cmd.Context(), s, c, ids, o); err != nil {
						return err
					}
				}
				if err := a.confirm(cmd.Context(), "Erase %s of context %s for good?", plain.Count(len(ids), "message"),
					describe(cmd.Context(), s, c)); err != nil {
					return err
				}
				return a.erase(cmd.Context(), s, c, ids, o)
			})
		},
	}
	a.branchFlag(cmd, &name, "branch", "count positions on `BRANCH` instead of the active one")
	cmd.Flags().BoolVar(&o.Shared, "shared", false, "also erase messages that several branches show")
	a.dryRunFlag(cmd)
	a.yesFlag(cmd)
	return cmd
}

// eraseLimits lists what an erase cannot remove.
const eraseLimits = "not reached: copies in git, exports, backups, snapshots and migrated files (.old), disk blocks that are not yet " +
	"overwritten, and system prompts, other contexts, and titles that a tool or a person wrote, if they repeat the message"

func (a *app) erase(ctx context.Context, s *ctxdir.Store, c uuid.UUID, ids []uuid.UUID, o ctxdir.EraseOptions) error {
	print := func(e ctxdir.Erased) error {
		if e.Problem != nil {
			why := plain.OneLine(cause(e.Problem).Error())
			if a.json {
				return a.record(unexaminedRecord{"unexamined", c.String(), e.Message.String(), why, a.dryRun})
			}
			a.warn(errorRecord{Error: fmt.Sprintf("cannot examine message %s: %s", e.Message, why)})
			return nil
		}
		r := erasedRecord{"erased", c.String(), record.ID(e.Message), e.Path, e.Bytes, e.Reason, a.dryRun, record.ID(e.With)}
		if e.Foreign {
			r.Record = "foreign"
		}
		with := ""
		if e.With != uuid.Nil {
			with = ", goes with " + e.With.String()
		}
		return a.result(r, "%s  %s  %s%s", e.Path, plain.Size(e.Bytes), e.Reason, with)
	}
	err := withReport(ctx, print, func(ctx context.Context, report func(ctxdir.Erased)) error {
		o.Report = report
		_, err := s.Erase(ctx, c, ids, o)
		return err
	})
	if err == nil && a.dryRun && !a.json {
		a.note("would erase %s", plain.Count(len(ids), "message"))
	}
	if err == nil {
		a.note(eraseLimits)
	}
	if errors.Is(err, ctxdir.ErrUnexamined) {
		return problems("repeat the erase when these messages can be read, or erase them too",
			"could not examine every message that may repeat an erased one")
	}
	return err
}

// showAlong tells a person, before the question, what goes along with messages.
func (a *app) showAlong(ctx context.Context, s *ctxdir.Store, c uuid.UUID, ids []uuid.UUID, o ctxdir.EraseOptions) error {
	o.DryRun = true
	items, err := s.Erase(ctx, c, ids, o)
	if err != nil && !errors.Is(err, ctxdir.ErrUnexamined) {
		return err
	}
	var lines []string
	for _, e := range items {
		var line string
		switch {
		case e.Problem != nil:
			line = fmt.Sprintf("message %s could not be examined", e.Message)
		case e.Reason == titleReason:
			line = "the title that was made from message " + e.Message.String()
		case e.With != uuid.Nil:
			line = fmt.Sprintf("message %s, which repeats %s", e.Message, e.With)
		default:
			continue
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		a.note("also: %s", line)
	}
	return nil
}

// titleReason is the reason of an item that is the title of the context.
const titleReason = "title"
