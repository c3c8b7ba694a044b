package storetest_test

import (
	"context"
	"errors"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/google/uuid"
)

// removal removes something for good. Its operation can be done again after a failure.
type removal struct {
	name string
	// takes are the kinds that are gone for good when the operation has succeeded, and may are those that it may take
	// too. All other kinds stay.
	takes, may []kind
	do         func(ctx context.Context, x *canaryStore, s *ctxdir.Store) error
}

// canaryRemovals is what each removal promises. docs/RELIABILITY.md, "What a removal removes", has it in words.
var canaryRemovals = []removal{
	{
		name:  "erase",
		takes: []kind{kText, kResult, kAttachment, kReference, kPacked, kVersion, kEdited, kAnswer, kMoment},
		do: func(ctx context.Context, _ *canaryStore, s *ctxdir.Store) error {
			ids := messageIDs(kText, kResult, kAttachment, kReference, kPacked, kVersion, kEdited, kAnswer, kMoment)
			return erased(s.Erase(ctx, workID(), ids, ctxdir.EraseOptions{}))
		},
	},
	{
		name:  "erase a prompt of Codex", // and the records and the title that repeat it
		takes: []kind{kMirror},
		do: func(ctx context.Context, x *canaryStore, s *ctxdir.Store) error {
			return erased(s.Erase(ctx, x.imported, []uuid.UUID{x.prompt}, ctxdir.EraseOptions{Shared: true}))
		},
	},
	{
		name:  "rewind, erase",
		takes: []kind{kTail, kNoted, kNote},
		do: func(ctx context.Context, x *canaryStore, s *ctxdir.Store) error {
			if err := errors.Join(rewind(ctx, s, mainBranch, x.keep), rewind(ctx, s, notedBranch, 0)); err != nil {
				return err
			}
			return erased(s.Erase(ctx, workID(), messageIDs(kTail, kNoted), ctxdir.EraseOptions{}))
		},
	},
	{
		name:  "rewind, gc, trash empty",
		takes: []kind{kTail, kVersion},
		do: func(ctx context.Context, x *canaryStore, s *ctxdir.Store) error {
			return errors.Join(rewind(ctx, s, mainBranch, x.keep), collectNow(ctx, s), emptyTrash(ctx, s))
		},
	},
	{
		name:  "rewind, trash empty",
		takes: []kind{kTail, kVersion},
		do: func(ctx context.Context, x *canaryStore, s *ctxdir.Store) error {
			return errors.Join(rewind(ctx, s, mainBranch, x.keep), emptyTrash(ctx, s))
		},
	},
	{
		name:  "rewind what has a moment, gc, trash empty",
		takes: []kind{kNoted, kNote, kVersion},
		do: func(ctx context.Context, _ *canaryStore, s *ctxdir.Store) error {
			return errors.Join(rewind(ctx, s, notedBranch, 0), collectNow(ctx, s), emptyTrash(ctx, s))
		},
	},
	{
		name:  "branch rm, gc, trash empty",
		takes: []kind{kBranch, kBranchText, kBranchNote, kBranchRole, kVersion},
		do: func(ctx context.Context, _ *canaryStore, s *ctxdir.Store) error {
			return errors.Join(removeBranch(ctx, s), collectNow(ctx, s), emptyTrash(ctx, s))
		},
	},
	{
		name:  "branch rm, trash empty",
		takes: []kind{kBranch, kBranchText, kBranchNote, kBranchRole, kVersion},
		do: func(ctx context.Context, _ *canaryStore, s *ctxdir.Store) error {
			return errors.Join(removeBranch(ctx, s), emptyTrash(ctx, s))
		},
	},
	{
		name:  "trash empty", // after a replacement
		takes: []kind{kVersion},
		do:    func(ctx context.Context, _ *canaryStore, s *ctxdir.Store) error { return emptyTrash(ctx, s) },
	},
	{
		name:  "moment rm, trash empty",
		takes: []kind{kMoment, kVersion},
		do: func(ctx context.Context, x *canaryStore, s *ctxdir.Store) error {
			err := s.Use(ctx, workID(), func(c *ctxdir.Context) error { return moment.Remove(ctx, c, x.moment) })
			return errors.Join(unlessGone(err), emptyTrash(ctx, s))
		},
	},
	{
		name:  "rm, trash empty",
		takes: ofContext(),
		do: func(ctx context.Context, _ *canaryStore, s *ctxdir.Store) error {
			_, err := s.Remove(ctx, workID())
			return errors.Join(unlessGone(err), emptyTrash(ctx, s))
		},
	},
	{
		name:  "rm, gc, trash empty",
		takes: ofContext(),
		do: func(ctx context.Context, _ *canaryStore, s *ctxdir.Store) error {
			_, err := s.Remove(ctx, workID())
			return errors.Join(unlessGone(err), collectNow(ctx, s), emptyTrash(ctx, s))
		},
	},
}

// ofContext returns the kinds of the context with the canaries: all but those of other contexts.
func ofContext() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k == kMirror || k == kOther })
}

func erased(_ []ctxdir.Erased, err error) error { return err }

// unlessGone returns the error of a removal, nil if an earlier attempt did it.
func unlessGone(err error) error {
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil
	}
	return err
}

const mainBranch = "main"

// rewind leaves a branch its first n messages.
func rewind(ctx context.Context, s *ctxdir.Store, branch string, n int64) error {
	return s.Use(ctx, workID(), func(c *ctxdir.Context) error {
		b, err := c.Branch(branch)
		if err != nil {
			return err
		}
		if has, err := b.Len(ctx); err != nil || has <= n {
			return err
		}
		return b.Rewind(ctx, n)
	})
}

func removeBranch(ctx context.Context, s *ctxdir.Store) error {
	return unlessGone(s.Use(ctx, workID(), func(c *ctxdir.Context) error {
		b, err := c.Branch(kBranch.word())
		if err != nil {
			return err
		}
		return b.Remove(ctx)
	}))
}

func collectNow(ctx context.Context, s *ctxdir.Store) error {
	_, err := s.Collect(ctx, ctxdir.CollectOptions{All: true, NoGrace: true})
	return err
}

func emptyTrash(ctx context.Context, s *ctxdir.Store) error {
	_, err := s.Purge(ctx, ctxdir.PurgeOptions{All: true})
	return err
}
