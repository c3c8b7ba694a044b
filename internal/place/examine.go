package place

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
)

// Examine checks the folder of a store with so many contexts: its file system, what that does, and its locks.
func Examine(path string, contexts int) ([]Finding, error) {
	facts, err := Look(path)
	if err != nil {
		return nil, err
	}
	found := facts.Findings(contexts)
	apart, err := Apart(path)
	if err != nil {
		return nil, err
	}
	for _, name := range apart {
		found = append(found, Finding{
			Kind: KindLayout, Severity: Warning, Path: name, Hint: "keep the whole store on one file system",
			Detail: "on another file system: files cannot be moved into or out of it",
		})
	}
	staging := filepath.Join(path, "staging")
	if info, err := os.Stat(staging); err != nil || !info.IsDir() {
		staging = path
	}
	found = append(found, Try(staging)...)
	return append(found, lockFindings(filepath.Join(path, "locks"), facts.Device)...), nil
}

// Findings judges the facts for a store with this many contexts.
func (f Facts) Findings(contexts int) []Finding {
	if f.System != "linux" {
		return []Finding{{
			Kind: KindSystem, Severity: Info,
			Detail: "the promise about power cuts covers Linux only; file system, mount options, space and limits cannot be checked on " + f.System,
		}}
	}
	return slices.Concat(f.fileSystem(), f.mount(), f.space(), f.inodes(), f.openFiles(), f.watches(contexts))
}

// lockFindings lists the holders of locks. Lock files without a holder are normal: they are never removed.
func lockFindings(dir, device string) []Finding {
	holders, err := Holders(dir, device)
	if err != nil {
		return nil // unsupported here, or no locks yet
	}
	var found []Finding
	for _, h := range holders {
		found = append(found, lockHeld(h))
	}
	return found
}

func lockHeld(h Holder) Finding {
	x := Finding{
		Kind:     KindLock,
		Severity: Info,
		Path:     "locks/" + h.Name,
		Detail:   fmt.Sprintf("held by process %d", h.Process),
	}
	if h.Process == 0 {
		x.Severity, x.Hint = Warning, `"fuser" shows the processes that have the file open`
		x.Detail = "held by a hidden process: it runs in another container, or it ended and left the lock to a child"
	}
	return x
}

// Staging reports the contents of staging/ in the folder of a store.
func Staging(path string) []Finding {
	entries, err := os.ReadDir(filepath.Join(path, "staging"))
	if err != nil {
		return nil // created on demand
	}
	contexts, unknown := 0, 0
	for _, e := range entries {
		if _, err := uuid.Parse(strings.TrimSuffix(e.Name(), ".ready")); err == nil && e.IsDir() {
			contexts++
		} else {
			unknown++
		}
	}
	var found []Finding
	if contexts > 0 {
		found = append(found, Finding{
			Kind: KindStaging, Severity: Info, Path: "staging",
			Detail: plain.Count(contexts, "incomplete context") + ": in creation, or left over; the next verb that writes removes leftovers",
		})
	}
	if unknown > 0 {
		found = append(found, Finding{
			Kind: KindStaging, Severity: Info, Path: "staging", Detail: plain.Count(unknown, "unknown file") + ": safe to remove",
		})
	}
	if found == nil {
		found = []Finding{{Kind: KindStaging, Severity: OK, Detail: "no leftovers"}}
	}
	return found
}
