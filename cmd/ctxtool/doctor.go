package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/place"
	"github.com/spf13/cobra"
)

// lookedAtRecord is something that the doctor looked at.
type lookedAtRecord struct {
	Record   string `json:"record"`
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Detail   string `json:"detail"`
	Hint     string `json:"hint,omitempty"`
	Path     string `json:"path,omitempty"`
}

type diagnosisRecord struct {
	Record   string         `json:"record"`
	Findings int            `json:"findings"`
	ByKind   map[string]int `json:"by_kind"`
	Problems int            `json:"problems"`
}

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look whether the store lies where its promises hold",
		Long: `Look at the place of the store: the versions of its formats, file system and mount options, room and limits, and try there what
the store relies on: syncs, locks, file times, names. Whether everything in the store is whole is for "ctxtool check".

Nothing in the store is changed. One temporary file is made in its folder staging/ and removed again; where that cannot be made, the
first finding of kind "write" says what was not tried. With --store DIR, a folder that is no store yet is looked at too: the file is
made in it.`,
		Example: `  ctxtool doctor
  ctxtool --json doctor`,
		Annotations: exits("there is a warning or an error", exitNoStore, exitInterrupted),
		Args:        between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := a.diagnose(cmd.Context())
			if err != nil {
				return err
			}
			return a.diagnosis(found)
		},
	}
}

// diagnose looks at the store in use, and at its place. Without a store it looks at the place that --store names.
func (a *app) diagnose(ctx context.Context) ([]place.Finding, error) {
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	var found []place.Finding
	var seen stock
	s, err := a.open(ctxdir.WithReadOnly())
	switch {
	case err == nil:
		defer s.Close()
		found, err = seen.look(ctx, s)
		if err != nil {
			return nil, err
		}
	case errors.Is(err, ctxdir.ErrNoStore) && (a.storeDir == "" || noFolder(path)):
		return nil, err
	default:
		found = []place.Finding{unopened(err)}
	}
	more, err := lookAround(path, seen.contexts)
	if err != nil {
		return nil, err
	}
	found = append(found, more...)
	if s != nil {
		found = append(found, staged(path)...)
		found = append(found, collectedLast(s, seen.contexts))
	}
	return found, nil
}

// unopened tells why a folder could not be opened as a store.
func unopened(err error) place.Finding {
	x := place.Finding{Kind: kindStore, Severity: place.Error, Detail: err.Error(), Hint: hint(err)}
	switch {
	case errors.Is(err, ctxdir.ErrNoStore):
		x.Severity, x.Detail, x.Hint = place.Info, "no store yet", `"ctxtool init" makes one`
	case errors.Is(err, ctxdir.ErrFormat):
		x.Kind = kindFormat
	}
	return x
}

// lookAround looks at the folder of a store of so many contexts.
func lookAround(path string, contexts int) ([]place.Finding, error) {
	facts, err := place.Look(path)
	if err != nil {
		return nil, err
	}
	found := facts.Findings(contexts)
	apart, err := place.Apart(path)
	if err != nil {
		return nil, err
	}
	for _, name := range apart {
		found = append(found, place.Finding{
			Kind: place.KindLayout, Severity: place.Warning, Path: name, Hint: "keep the whole store on one file system",
			Detail: "it lies on another file system: nothing can be moved there or from there",
		})
	}
	staging := filepath.Join(path, "staging")
	if !isFolder(staging) {
		staging = path
	}
	found = append(found, place.Try(staging)...)
	return append(found, locksHeld(filepath.Join(path, "locks"), facts.Device)...), nil
}

// diagnosis prints findings.
func (a *app) diagnosis(found []place.Finding) error {
	sum := diagnosisRecord{Record: "summary", Findings: len(found), ByKind: map[string]int{}}
	for _, f := range found {
		sum.ByKind[string(f.Kind)]++
		if f.Severity == place.Warning || f.Severity == place.Error {
			sum.Problems++
		}
		var err error
		if a.json {
			err = a.record(lookedAtRecord{"finding", string(f.Kind), string(f.Severity), f.Detail, f.Hint, f.Path})
		} else {
			err = a.printf("%s", lookedAtLines(f))
		}
		if err != nil {
			return err
		}
	}
	if a.json {
		if err := a.record(sum); err != nil {
			return err
		}
	}
	if sum.Problems > 0 {
		return &problemsError{text: plural(sum.Problems, "problem", "problems")}
	}
	return nil
}

// lookedAtLines is a finding for people: a line, and one more with what to do.
func lookedAtLines(f place.Finding) string {
	detail := oneLine(f.Detail)
	if f.Path != "" {
		detail = oneLine(f.Path) + ": " + detail
	}
	s := fmt.Sprintf("%-7s  %-11s  %s\n", f.Severity, f.Kind, detail)
	if f.Hint != "" {
		s += fmt.Sprintf("%22s%s\n", "", oneLine(f.Hint))
	}
	return s
}
