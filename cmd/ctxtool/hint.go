package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/branch"
	folder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/legacy"
	"github.com/google/uuid"
)

// hints say what to try next, the first one that fits: for an error, or any if nil, of these operations, or all. In the
// text CONTEXT stands for the id of the context, where it is known.
var hints = []struct {
	err  error
	ops  []string
	text string
}{
	{ctxdir.ErrDurability, nil, "whether it is stored is not certain: append again with the same id"},
	{syscall.EMFILE, nil, `the process may open too few files: "ulimit -n 1024" allows more`},
	{syscall.ENFILE, nil, "the system has too many files open: end other programs, or raise its limit (fs.file-max)"},
	{syscall.ENOMEM, nil, "the system has no memory left: end other programs"},
	{syscall.ENOSPC, nil, `the disk is full: "ctxtool trash empty" frees what lies in the trash`},
	{syscall.EDQUOT, nil, `your quota of the disk is used up: "ctxtool trash empty" frees what lies in the trash`},
	{syscall.EROFS, nil, "the file system is for reading only: --store names a store elsewhere"},
	{syscall.EIO, nil, "the disk fails: copy the store to another one, and look at the system's log"},
	{ctxdir.ErrNoStore, nil, `"ctxtool init" makes one, --store names another`},
	{ctxdir.ErrLocked, nil, "--lock-timeout waits longer"},
	{ctxdir.ErrFormat, nil, "a newer ctxtool may read it"},
	{os.ErrPermission, nil, "check who may read and write there"},
	{branch.ErrActive, nil, `"ctxtool branch switch CONTEXT NAME" makes another one active`},
	{ctxdir.ErrExist, []string{"restore"}, `"ctxtool rm" moves what is there to the trash`},
	{nil, []string{"restore", "find in trash of"}, `"ctxtool trash ls" lists the items`},
	{ctxdir.ErrExist, []string{"create"}, `"ctxtool show CONTEXT" shows it; without --id the new one gets another id`},
	{ctxdir.ErrExist, []string{"new branch", "fork", "rename"}, `"ctxtool branch ls CONTEXT" lists the names that are taken`},
	{fs.ErrExist, []string{"roll back"}, "name a file that is not there yet"},
	{legacy.ErrNotLegacy, []string{"roll back"}, `"ctxtool rollback CONTEXT --to FILE" writes a legacy file`},
	{ctxdir.ErrInvalid, []string{"open"}, "name another folder"},
	{ctxdir.ErrPosition, nil, `"ctxtool branch ls CONTEXT" tells how many messages there are`},
	{ctxdir.ErrShared, nil, "--shared changes it in all of them"},
	{legacy.ErrDamaged, nil, `nothing mends a legacy context; "ctxtool rm CONTEXT" moves it to the trash`},
	{ctxdir.ErrDamaged, nil, `"ctxtool repair CONTEXT" mends what can be mended`},
	{folder.ErrGone, nil, `"ctxtool ls" lists the contexts, "ctxtool trash ls" what was removed`},
	{ctxdir.ErrNotExist, []string{"find"}, `"ctxtool ls" lists the contexts, "ctxtool trash ls" what was removed`},
	{ctxdir.ErrConflict, nil, "another id, or none, adds it as a new message"},
	{ctxdir.ErrTooLarge, []string{"append"}, "--max-message allows larger ones"},
	{fs.ErrNotExist, nil, "is the path right?"},
	{syscall.ENOTDIR, nil, "is the path right?"},
}

// hint says what to try next, "" where nothing can be said.
func hint(err error) string {
	var (
		use      *usageError
		problems *problemsError
		summed   *summedError
		file     *fs.PathError
	)
	where := placeOf(err)
	switch {
	case errors.As(err, &file) && file.Path == os.Stdout.Name():
		return "" // nothing is wrong with the store
	case errors.As(err, &summed):
		return ""
	case errors.As(err, &use):
		return use.hint
	case errors.As(err, &problems):
		return problems.hint
	case errors.Is(err, ctxdir.ErrAmbiguous):
		return "give more of the id"
	case where.Op == "migrate" && errors.Is(err, legacy.ErrDamaged), where.Differs != nil:
		return "" // the reason is all that is known
	case storeDamaged(err) && !refused(err):
		return `"ctxtool repair" writes it again`
	}
	text := ""
	if errors.Is(err, ctxdir.ErrNotExist) && !errors.Is(err, folder.ErrGone) {
		text = missing(where)
	}
	for _, h := range hints {
		if text == "" && (h.err == nil || errors.Is(err, h.err)) && (h.ops == nil || slices.Contains(h.ops, where.Op)) {
			text = h.text
		}
	}
	if where.Context != uuid.Nil {
		text = strings.ReplaceAll(text, "CONTEXT", where.Context.String())
	}
	return text
}

// storeDamaged reports whether an error is about ctxdir.json, without which a store opens for reading only.
func storeDamaged(err error) bool {
	where := placeOf(err)
	return errors.Is(err, ctxdir.ErrDamaged) && where.Context == uuid.Nil && slices.Contains([]string{"open", "init", "repair"}, where.Op)
}

// missing is the hint for a message or a branch that is not there.
func missing(where *ctxdir.Error) string {
	switch {
	case where.ID != uuid.Nil:
		return `"ctxtool show CONTEXT --no-content" tells the ids`
	case where.Branch != "" || where.Op == "open":
		return `"ctxtool branch ls CONTEXT" lists the branches`
	}
	return ""
}

// refused reports whether the system refused something for a reason that no repair takes away.
func refused(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, os.ErrPermission,
	}, func(reason error) bool { return errors.Is(err, reason) })
}

// problemHint is the hint for a context that has a problem.
func problemHint(id uuid.UUID, problem error) string {
	if refused(problem) || errors.Is(problem, ctxdir.ErrFormat) || errors.Is(problem, legacy.ErrDamaged) {
		return strings.ReplaceAll(hint(problem), "CONTEXT", id.String())
	}
	return strings.ReplaceAll(`"ctxtool repair CONTEXT" mends what can be mended`, "CONTEXT", id.String())
}
