package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/spf13/cobra"
)

// cursorRecord ends a list that --limit cut.
type cursorRecord struct {
	Record string `json:"record"`
	Next   string `json:"next"`
}

// parseTime parses a time in RFC 3339, a date, or a duration before now. It returns zero for an empty text.
func parseTime(cmd *cobra.Command, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	return time.Time{}, usage(cmd, "%s: %q is not a time, a date or a duration, such as 2026-01-02T15:04:05Z, 2026-01-02 or 48h", flag, text)
}

func listAll(ctx context.Context, s *ctxdir.Store, o ctxdir.ListOptions) (all []ctxdir.Summary, err error) {
	for sum, err := range s.List(ctx, o) {
		if err != nil {
			return nil, err
		}
		all = append(all, sum)
	}
	return all, nil
}

func contextRecord(s ctxdir.Summary) record.Context {
	r := record.OfContext(s)
	r.Record = "context"
	return r
}

// lastFolders is the end of a path: its last two folders, which distinguish projects.
func lastFolders(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return strings.Join(parts[max(len(parts)-2, 0):], "/")
}

func listProblems(all []ctxdir.Summary) error {
	var bad []ctxdir.Summary
	for _, s := range all {
		if s.Problem != nil {
			bad = append(bad, s)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	worst := bad[max(slices.IndexFunc(bad, func(s ctxdir.Summary) bool { return s.Legacy == "" }), 0)]
	return problems(problemHint(worst.ID, worst.Problem), "found problems in %s", plain.Count(len(bad), "context"))
}
