package main

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir"
	"github.com/spf13/cobra"
)

// labelFlags are the labels that a command line sets or asks for, and those that it removes.
type labelFlags struct {
	set, unset []string
}

func (l *labelFlags) add(cmd *cobra.Command, usage string) {
	cmd.Flags().StringArrayVar(&l.set, "label", nil, usage)
}

// parse returns the labels given as K=V, nil for none. Of a repeated K the last counts.
func (l *labelFlags) parse(cmd *cobra.Command) (labels map[string]string, err error) {
	for _, text := range l.set {
		key, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || key == "":
			return nil, usage(cmd, "--label: expected KEY=VALUE, got %q", text)
		case !utf8.ValidString(text):
			return nil, usage(cmd, "--label: %q is not valid UTF-8", text)
		case labels == nil:
			labels = map[string]string{}
		}
		labels[key] = value
	}
	return labels, nil
}

// apply removes and sets labels of a context.
func (l *labelFlags) apply(m *ctxdir.Metadata, set map[string]string) {
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	for _, key := range l.unset {
		delete(m.Labels, key)
	}
	maps.Copy(m.Labels, set)
}
