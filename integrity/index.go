package integrity

import (
	"context"
	"math"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
)

// openIndex reads the index and the journals.
func (x *examination) openIndex() error {
	if err := x.indexProblems(func() error { return nil }); err != nil {
		return err
	}
	if !x.ReadData {
		return nil
	}
	if err := x.replaced(); err != nil {
		return err
	}
	damaged, err := x.Log.DamagedJournals()
	if err != nil {
		return err
	}
	for gen, why := range damaged {
		if err := x.report(repairable(KindJournal, SeverityWarning, ctxfolder.JournalFile(gen), why.Error())); err != nil {
			return err
		}
	}
	return nil
}

// rows reports damaged rows: reading them rebuilt the index.
func (x *examination) rows(ctx context.Context) error {
	if x.indexReported {
		return nil
	}
	return x.indexProblems(func() error {
		for _, line := range x.metadata.Lines {
			for _, err := range x.Log.Pages(ctx, line.ID, 0, math.MaxInt64) {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// indexProblems reports the problems that the log meets at every try, since a writer may be at work. read repeats the
// reads that met them.
func (x *examination) indexProblems(read func() error) error {
	var problems []index.Problem
	for try := range x.tries() {
		x.wait(try)
		err := x.Log.Refresh()
		if err == nil {
			err = x.Log.Complete()
		}
		if err == nil && try > 0 {
			err = read()
		}
		if err == nil {
			problems, err = x.Log.Problems()
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(problems, ofIndex) {
			return nil
		}
		if try < x.tries()-1 {
			_ = x.Log.Close() // the next try begins anew
		}
	}
	x.indexReported = true
	for _, p := range problems {
		if ofIndex(p) {
			if err := x.report(repairable(Kind(p.Kind), SeverityError, "", p.Detail)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofIndex reports whether a problem of the log concerns the index. Problems of messages are found again one by one.
func ofIndex(p index.Problem) bool {
	return p.Kind == string(KindIndex) || p.Kind == string(KindJournal)
}
