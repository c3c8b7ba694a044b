package main

import (
	"bytes"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/spf13/cobra"
)

// listedContext is what a template of --format sees of a context.
type listedContext struct {
	record.Context
	Short   string // the beginning of the id that the list shows
	Project string
}

// Label is the value of a label, "" if there is none.
func (c listedContext) Label(key string) string { return c.Labels[key] }

var listFunctions = template.FuncMap{
	"json": func(v any) string { return string(record.Encode(v)) },
	"size": plain.Size,
	"ago":  plain.Ago,
	"date": plain.Minute,
}

// parseListFormat parses a template. As in other tools, \t and \n in it are a tab and a line break.
func parseListFormat(cmd *cobra.Command, text string) (*template.Template, error) {
	text = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(text)
	t, err := template.New("format").Funcs(listFunctions).Parse(text)
	if err == nil && (t.Tree == nil || parse.IsEmptyTree(t.Root)) {
		return nil, usage(cmd, "--format: an empty template")
	}
	if err == nil {
		err = t.Execute(&bytes.Buffer{}, listedContext{})
	}
	if err != nil {
		return nil, usage(cmd, "--format: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	return t, nil
}

// printFormat prints a line for each context.
func (a *app) printFormat(s *ctxdir.Store, all []ctxdir.Summary, t *template.Template) error {
	a.page()
	ids := shortIDsIn(s)
	for _, sum := range all {
		var line strings.Builder
		if err := t.Execute(&line, listedContext{contextRecord(sum), ids.of(sum.ID), sum.Labels["project"]}); err != nil {
			return err
		}
		if err := a.printf("%s\n", line.String()); err != nil {
			return err
		}
	}
	return nil
}
