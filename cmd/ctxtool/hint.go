package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/branch"
	"github.com/ctxdir/ctxdir/compress"
	folder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/workspace"
	"github.com/google/uuid"
)

// hints say what to do next. The first match counts; a nil error matches any error, nil operations match all. CONTEXT
// stands for the id of the context, if the error has it.
var hints = []struct {
	err  error
	ops  []string
	text string
}{
	{ctxdir.ErrDurability, nil, appendAgain},
	{syscall.EMFILE, nil, raiseFiles},
	{syscall.ENFILE, nil, "close other programs, or raise the system's limit of open files (fs.file-max)"},
	{syscall.ENOMEM, nil, "close other programs to free memory"},
	{syscall.ENOSPC, nil, `free disk space; "ctxtool trash empty" purges the trash`},
	{syscall.EDQUOT, nil, `free space in your quota; "ctxtool trash empty" purges the trash`},
	{syscall.EROFS, nil, "use a store on a writable file system, as with --store DIR"},
	{syscall.EIO, nil, "the disk may be failing: copy the store to another disk, and read the system log"},
	{ctxdir.ErrNoStore, nil, `run "ctxtool init" to create a store, or name one with --store DIR`},
	{workspace.ErrForeign, nil, "name the store to use, with --store DIR or $CTXDIR_STORE"},
	{ctxdir.ErrLocked, nil, "retry, or wait longer with --lock-timeout"},
	{nil, []string{findItem}, listItems},
	{ctxdir.ErrFormat, nil, "use a newer version of ctxtool"},
	{os.ErrPermission, nil, "check the permissions of the file and its folder"},
	{branch.ErrActive, nil, `run "ctxtool branch switch CONTEXT NAME" to make another branch active`},
	{ctxdir.ErrExist, []string{"restore"}, `run "ctxtool rm" to move the existing context to the trash`},
	{nil, []string{"restore"}, listItems},
	{ctxdir.ErrExist, []string{"create"}, `run "ctxtool show CONTEXT" to see it, or omit --id to create another context`},
	{ctxdir.ErrExist, []string{"new branch", "fork", "rename"}, `run "ctxtool branch ls CONTEXT" to list the names in use`},
	{fs.ErrExist, []string{"roll back"}, "name a file that does not exist yet"},
	{legacy.ErrNotLegacy, []string{"roll back"}, `run "ctxtool rollback CONTEXT --to FILE" to write a legacy file`},
	{legacy.ErrDamaged, nil, `a legacy context cannot be repaired; run "ctxtool rm CONTEXT" to move it to the trash`},
	{ctxdir.ErrDamaged, nil, `run "ctxtool repair CONTEXT"`},
	{ctxdir.ErrInvalid, []string{"open"}, "name another folder"},
	{ctxdir.ErrPosition, nil, `run "ctxtool branch ls CONTEXT" to see the number of messages`},
	{ctxdir.ErrShared, nil, "add --shared to change it on all of them"},
	{folder.ErrGone, nil, findContext},
	{ctxdir.ErrNotExist, []string{"find"}, findContext},
	{ctxdir.ErrNotExist, []string{findMessage}, `run "ctxtool show CONTEXT --no-content" to list the ids`},
	{ctxdir.ErrNotExist, []string{findMoment}, `run "ctxtool moment ls" to list the ids`},
	{compress.ErrRemote, nil, "add --extraction hybrid to do it locally if the server fails"},
	{ctxdir.ErrConflict, nil, "append it as a new message with another id, or without --id"},
	{ctxdir.ErrTooLarge, []string{"append"}, "raise the limit with --max-message"},
	{fs.ErrNotExist, nil, "check the path"},
	{syscall.ENOTDIR, nil, "check the path"},
}

const (
	appendAgain = "the message may or may not be stored; append it again with the same id"
	raiseFiles  = `raise the limit of open files, as with "ulimit -n 1024"`
)

const listItems = `run "ctxtool trash ls" to list the items`

const findContext = `run "ctxtool ls" to list the contexts, or "ctxtool trash ls" for removed ones`

// findItem is the operation of errors about items of the trash.
const findItem = "find in trash of"

// hint says what to do after an error, "" if there is no advice.
func hint(err error) string {
	var (
		verb *verbError
		file *fs.PathError
		look *importer.UnknownError
	)
	where := libraryError(err)
	switch {
	case errors.As(err, &file) && file.Path == os.Stdout.Name():
		return "" // the fault is not in the store
	case errors.As(err, &look):
		return look.Next
	case errors.As(err, &verb):
		return verb.hint
	case errors.Is(err, ctxdir.ErrDurability) && errors.Is(err, syscall.EMFILE):
		return raiseFiles + "; " + appendAgain
	case errors.Is(err, ctxdir.ErrAmbiguous):
		if where.Op == findItem {
			return `run "ctxtool trash ls" to list the items, and give the id of one`
		}
		return "type more of the id"
	case where.Op == "migrate" && errors.Is(err, legacy.ErrDamaged), where.Differs != nil:
		return "" // the reason says it all
	case storeDamaged(err) && !refused(err):
		return `run "ctxtool repair" to rewrite it`
	}
	text := ""
	if errors.Is(err, ctxdir.ErrNotExist) && !errors.Is(err, folder.ErrGone) {
		text = missingHint(where)
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

// storeDamaged reports whether an error is about ctxdir.json. Without that file a store opens read-only.
func storeDamaged(err error) bool {
	where := libraryError(err)
	return errors.Is(err, ctxdir.ErrDamaged) && where.Context == uuid.Nil && slices.Contains([]string{"open", "init", "repair"}, where.Op)
}

// missingHint is the hint for a missing message or branch.
func missingHint(where *ctxdir.Error) string {
	switch {
	case where.ID != uuid.Nil:
		return `run "ctxtool show CONTEXT --no-content" to list the ids`
	case where.Branch != "" || where.Op == "open":
		return `run "ctxtool branch ls CONTEXT" to list the branches`
	}
	return ""
}

// refused reports whether the system refused an operation for a reason that repair cannot remove.
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
	return fmt.Sprintf("run %q", "ctxtool repair "+id.String())
}

// problemOf reports the problem of a context that could be opened nevertheless.
func problemOf(c *ctxdir.Context) error {
	p := c.Metadata().Problem
	if p == nil {
		return nil
	}
	return problems(problemHint(c.ID(), p), "%v", p)
}

// findMoment is the operation of errors about moments.
const findMoment = "find a moment in"

// findMessage is the operation of errors about references.
const findMessage = "find a message of"
