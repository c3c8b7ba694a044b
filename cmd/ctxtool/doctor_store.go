package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/place"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
)

// The kinds of findings about the store itself.
const (
	kindStore      place.Kind = "store"
	kindFormat     place.Kind = "format"
	kindContexts   place.Kind = "contexts"
	kindLegacy     place.Kind = "legacy"
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
	x := place.Finding{Kind: kindContexts, Severity: place.OK, Detail: plain.Count(k.contexts, "context")}
	if k.failing > 0 {
		x.Severity, x.Hint = place.Warning, `run "ctxtool check" for details, and "ctxtool repair" to repair`
		x.Detail = fmt.Sprintf("found problems in %d of %s", k.failing, x.Detail)
	}
	found := []place.Finding{x}
	if k.legacy > 0 {
		found = append(found, place.Finding{
			Kind: kindLegacy, Severity: place.Info, Hint: `run "ctxtool migrate" on the store to migrate all at once`,
			Detail: plain.Count(k.legacy, "legacy context") + "; opening a legacy context migrates it",
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
		x.Detail = "last collected " + plain.Ago(last)
	}
	return x
}
