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
	"github.com/google/uuid"
)

// What the doctor finds out about the store itself.
const (
	kindStore      place.Kind = "store"
	kindFormat     place.Kind = "format"
	kindContexts   place.Kind = "contexts"
	kindLegacy     place.Kind = "legacy"
	kindStaging    place.Kind = "staging"
	kindCollection place.Kind = "collection"
)

// stock is what a list of the store's contexts tells.
type stock struct {
	contexts int
	legacy   int
	failing  int
	ahead    time.Time // the newest change, where it is in the future
}

// tolerated is how far ahead of the clock a change may be: clocks of several machines differ.
const tolerated = time.Minute

func (k *stock) look(ctx context.Context, s *ctxdir.Store) ([]place.Finding, error) {
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
	limit := time.Now().Add(tolerated)
	for sum, err := range s.List(ctx) {
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
		found = append(found, place.Finding{Kind: kindFormat, Severity: place.OK, Detail: format + ", and no context of a newer one"})
	}
	return append(found, k.findings()...), nil
}

func newerContext(id uuid.UUID) place.Finding {
	return place.Finding{
		Kind: kindFormat, Severity: place.Error, Path: id.String(),
		Detail: "the context is of a format this program does not know", Hint: hint(ctxdir.ErrFormat),
	}
}

func (k *stock) findings() []place.Finding {
	x := place.Finding{Kind: kindContexts, Severity: place.OK, Detail: plural(k.contexts, "context", "contexts")}
	if k.failing > 0 {
		x.Severity, x.Hint = place.Warning, `"ctxtool check" tells what is wrong, "ctxtool repair" mends it`
		x.Detail = fmt.Sprintf("%d of %s not in order", k.failing, x.Detail)
	}
	found := []place.Finding{x}
	if k.legacy > 0 {
		found = append(found, place.Finding{
			Kind: kindLegacy, Severity: place.Info, Hint: `"ctxtool migrate" migrates them all at once`,
			Detail: plural(k.legacy, "legacy context", "legacy contexts") + ", migrated when they are opened",
		})
	}
	if !k.ahead.IsZero() {
		found = append(found, place.Finding{
			Kind: place.KindClock, Severity: place.Warning, Hint: "set the clock",
			Detail: fmt.Sprintf("something was changed at %s, which is yet to come: the clock is wrong, or was", k.ahead.UTC().Format(time.RFC3339)),
		})
	}
	return found
}

// locksHeld tells who holds locks. Files that nobody holds are no matter: they are never removed.
func locksHeld(dir, device string) []place.Finding {
	holders, err := place.Holders(dir, device)
	if err != nil {
		return nil // not told here, or there are none yet
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
		x.Severity, x.Hint = place.Warning, `"fuser" tells who has the file open`
		x.Detail = "held, and its holder cannot be seen: it is in another container, or ended and left it to a child"
	}
	return x
}

// staged tells of what is in staging/.
func staged(path string) []place.Finding {
	entries, err := os.ReadDir(filepath.Join(path, "staging"))
	if err != nil {
		return nil // made when it is needed
	}
	contexts, others := 0, 0
	for _, e := range entries {
		if _, err := uuid.Parse(strings.TrimSuffix(e.Name(), ".ready")); err == nil && e.IsDir() {
			contexts++
		} else {
			others++
		}
	}
	var found []place.Finding
	if contexts > 0 {
		found = append(found, place.Finding{
			Kind: kindStaging, Severity: place.Info, Path: "staging",
			Detail: plural(contexts, "context", "contexts") + " being made, or left when that was stopped: the next verb that writes removes those",
		})
	}
	if others > 0 {
		found = append(found, place.Finding{
			Kind:     kindStaging,
			Severity: place.Info,
			Path:     "staging",
			Detail:   plural(others, "thing", "things") + " nobody knows: they can be removed",
		})
	}
	if found == nil {
		found = []place.Finding{{Kind: kindStaging, Severity: place.OK, Detail: "nothing was left half-made"}}
	}
	return found
}

// longAgo is how old a collection is when it is worth a word: in a store that is written to there is one each day.
const longAgo = 30 * 24 * time.Hour

func collectedLast(s *ctxdir.Store, contexts int) place.Finding {
	x := place.Finding{Kind: kindCollection, Severity: place.OK}
	last := s.Info().LastCollected
	switch {
	case last.IsZero() && contexts == 0:
		x.Detail = "nothing to collect yet"
	case last.IsZero():
		x.Severity, x.Detail, x.Hint = place.Info, "nothing was ever collected", `"ctxtool gc" does it now`
	case time.Since(last) > longAgo:
		x.Severity, x.Hint = place.Info, `"ctxtool gc" does it now`
		fallthrough
	default:
		x.Detail = "last collected " + humanTime(last)
	}
	return x
}
