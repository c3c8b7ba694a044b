package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/place"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/spf13/cobra"
)

// diagnosisRecord is a finding of the doctor.
type diagnosisRecord struct {
	Record   string `json:"record"`
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Detail   string `json:"detail"`
	Hint     string `json:"hint,omitempty"`
	Path     string `json:"path,omitempty"`
}

type doctorSummary struct {
	Record   string         `json:"record"`
	Findings int            `json:"findings"`
	ByKind   map[string]int `json:"by_kind"`
	Problems int            `json:"problems"`
}

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that this file system is safe for the store",
		Long: `Check the formats of the store, its file system and mount options, free space and limits. Test the
syncs, locks, file times and names on which the store relies. To verify the contents, run "ctxtool
check".

doctor changes nothing in the store. It creates one temporary file in staging/ and removes it. If it
cannot create the file, the first finding of kind "write" says which tests it skipped. With --store
DIR, doctor also checks a folder that is not a store yet, and creates the file there.`,
		Example: `  ctxtool doctor
  ctxtool --json doctor`,
		Annotations: exits("found warnings or errors", exitNoStore, exitInterrupted),
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

// diagnose checks the store in use and its file system. Without a store it checks the folder that --store names.
func (a *app) diagnose(ctx context.Context) ([]place.Finding, error) {
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	var found []place.Finding
	var contexts contextSurvey
	s, err := a.open(ctxdir.Options{ReadOnly: true})
	switch {
	case err == nil:
		defer s.Close()
		found, err = contexts.look(ctx, s)
		if err != nil {
			return nil, err
		}
	case errors.Is(err, ctxdir.ErrNoStore) && (a.storeDir == "" || noFolder(path)):
		return nil, err
	default:
		found = []place.Finding{openFailure(err)}
	}
	more, err := place.Examine(path, contexts.contexts)
	if err != nil {
		return nil, err
	}
	found = append(found, more...)
	if s != nil {
		found = append(found, place.Staging(path)...)
		found = append(found, collectionFinding(s, contexts.contexts))
	}
	return found, nil
}

// openFailure explains why a folder did not open as a store.
func openFailure(err error) place.Finding {
	x := place.Finding{Kind: kindStore, Severity: place.Error, Detail: err.Error(), Hint: hint(err)}
	switch {
	case errors.Is(err, ctxdir.ErrNoStore):
		x.Severity, x.Detail, x.Hint = place.Info, "no store yet", `run "ctxtool init" to create one`
	case errors.Is(err, ctxdir.ErrFormat):
		x.Kind = kindFormat
	}
	return x
}

// diagnosis prints findings.
func (a *app) diagnosis(found []place.Finding) error {
	sum := doctorSummary{Record: "summary", Findings: len(found), ByKind: map[string]int{}}
	for _, f := range found {
		sum.ByKind[string(f.Kind)]++
		if f.Severity == place.Warning || f.Severity == place.Error {
			sum.Problems++
		}
		r := diagnosisRecord{"finding", string(f.Kind), string(f.Severity), f.Detail, f.Hint, f.Path}
		if err := a.result(r, "%s", findingLines(f)); err != nil {
			return err
		}
	}
	if a.json {
		if err := a.record(sum); err != nil {
			return err
		}
	}
	if sum.Problems > 0 {
		return problems("", "found %s", plain.Count(sum.Problems, "problem"))
	}
	return nil
}

// findingLines is a finding for people: a line, and a second one with the hint.
func findingLines(f place.Finding) string {
	detail := plain.OneLine(f.Detail)
	if f.Path != "" {
		detail = plain.OneLine(f.Path) + ": " + detail
	}
	s := fmt.Sprintf("%-7s  %-11s  %s", f.Severity, f.Kind, detail)
	if f.Hint != "" {
		s += fmt.Sprintf("\n%22s%s", "", plain.OneLine(f.Hint))
	}
	return s
}
