package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/place"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/google/uuid"
)

// The kinds of findings about the store itself.
const (
	kindStore      place.Kind = "store"
	kindFormat     place.Kind = "format"
	kindContexts   place.Kind = "contexts"
	kindLegacy     place.Kind = "legacy"
	kindStaging    place.Kind = "staging"
	kindCollection place.Kind = "collection"
)

// contextSurvey counts the contexts of the store by their state.
type contextSurvey struct {
	contexts int
	legacy   int
	failing  int
	ahead    time.Time // the newest change, if it is in the future
}

// clockTolerance is how far ahead of the clock a change may be: the clocks of machines differ.
const clockTolerance = time.Minute

func (k *contextSurvey) look(ctx context.Context, s *ctxdir.Store) ([]place.Finding, error) {
	info := s.Info()
	path, err := filepath.Abs(info.Path)
	if err != nil {
		return nil, err
	}
	found := []place.Finding{{Kind: kindStore, Severity: place.OK, Detail: path}}
	format := ""
	if problem := info.Problem; problem != nil {
		found = append(found, place.Finding{Kind: kindStore, Severity: place.Error, Detail: problem.Error(), Hint: hint(problem)})
	} else if format, err = formatOf(path); err != nil {
		return nil, err
	}
	limit := time.Now().Add(clockTolerance)
	for sum, err := range s.List(ctx, ctxdir.ListOptions{Kind: "*"}) {
		if err != nil {
			return nil, err
		}
		k.contexts++
		switch {
		case sum.Legacy != "":
			k.legacy++
		case errors.Is(sum.Problem, ctxdir.ErrFormat):
			found = append(found, newerContext(sum.ID))
		case sum.Problem != nil:
			k.failing++
		}
		if sum.UpdatedAt.After(limit) && sum.UpdatedAt.After(k.ahead) {
			k.ahead = sum.UpdatedAt
		}
	}
	if len(found) == 1 {
		found = append(found, place.Finding{Kind: kindFormat, Severity: place.OK, Detail: format + "; no context has a newer format"})
	}
	return append(found, k.findings()...), nil
}

func newerContext(id uuid.UUID) place.Finding {
	return place.Finding{
		Kind: kindFormat, Severity: place.Error, Path: id.String(),
		Detail: "the context has a format that this version does not know", Hint: hint(ctxdir.ErrFormat),
	}
}

func (k *contextSurvey) findings() []place.Finding {
	x := place.Finding{Kind: kindContexts, Severity: place.OK, Detail: term.Count(k.contexts, "context")}
	if k.failing > 0 {
		x.Severity, x.Hint = place.Warning, `run "ctxtool check" for details, and "ctxtool repair" to repair`
		x.Detail = fmt.Sprintf("found problems in %d of %s", k.failing, x.Detail)
	}
	found := []place.Finding{x}
	if k.legacy > 0 {
		found = append(found, place.Finding{
			Kind: kindLegacy, Severity: place.Info, Hint: `run "ctxtool migrate" on the store to migrate all at once`,
			Detail: term.Count(k.legacy, "legacy context") + "; opening a legacy context migrates it",
		})
	}
	if !k.ahead.IsZero() {
		found = append(found, place.Finding{
			Kind: place.KindClock, Severity: place.Warning, Hint: "set the clock",
			Detail: fmt.Sprintf("a context changed at %s, in the future: the clock is or was wrong", k.ahead.UTC().Format(time.RFC3339)),
		})
	}
	return found
}

// lockFindings lists the holders of locks. Lock files without a holder are normal: they are never removed.
func lockFindings(dir, device string) []place.Finding {
	holders, err := place.Holders(dir, device)
	if err != nil {
		return nil // unsupported here, or no locks yet
	}
	var found []place.Finding
	for _, h := range holders {
		found = append(found, lockHeld(h))
	}
	return found
}

func lockHeld(h place.Holder) place.Finding {
	x := place.Finding{
		Kind:     place.KindLock,
		Severity: place.Info,
		Path:     "locks/" + h.Name,
		Detail:   fmt.Sprintf("held by process %d", h.Process),
	}
	if h.Process == 0 {
		x.Severity, x.Hint = place.Warning, `"fuser" shows the processes that have the file open`
		x.Detail = "held by a hidden process: it runs in another container, or it ended and left the lock to a child"
	}
	return x
}

// stagingFindings reports the contents of staging/.
func stagingFindings(path string) []place.Finding {
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
	var found []place.Finding
	if contexts > 0 {
		found = append(found, place.Finding{
			Kind: kindStaging, Severity: place.Info, Path: "staging",
			Detail: term.Count(contexts, "incomplete context") + ": in creation, or left over; the next verb that writes removes leftovers",
		})
	}
	if unknown > 0 {
		found = append(found, place.Finding{
			Kind: kindStaging, Severity: place.Info, Path: "staging", Detail: term.Count(unknown, "unknown file") + ": safe to remove",
		})
	}
	if found == nil {
		found = []place.Finding{{Kind: kindStaging, Severity: place.OK, Detail: "no leftovers"}}
	}
	return found
}

// collectionOverdue is the age of a collection that the doctor mentions: a store with writers collects once a day.
const collectionOverdue = 30 * 24 * time.Hour

func collectionFinding(s *ctxdir.Store, contexts int) place.Finding {
	x := place.Finding{Kind: kindCollection, Severity: place.OK}
	last := s.Info().LastCollected
	switch {
	case last.IsZero() && contexts == 0:
		x.Detail = "no garbage yet"
	case last.IsZero():
		x.Severity, x.Detail, x.Hint = place.Info, "garbage was never collected", `run "ctxtool gc" to collect it`
	case time.Since(last) > collectionOverdue:
		x.Severity, x.Hint = place.Info, `run "ctxtool gc" to collect garbage`
		fallthrough
	default:
		x.Detail = "last collected " + term.Ago(last)
	}
	return x
}
