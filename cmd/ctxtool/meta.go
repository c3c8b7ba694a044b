package main

import (
	"bytes"
	"encoding/json"

	"github.com/ctxdir/ctxdir"
	folder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/spf13/cobra"
)

// fixedMembers are the members of metadata.json that --set cannot change, and the hint to change them.
var fixedMembers = map[string]string{
	"ctxdir": "", "record": "", "id": "", "lines": "", "removed": "", "revision": "", "created_at": "", "updated_at": "",
	"check": "", "external_id": "", "kind": `use "ctxtool new --kind"`, "labels": "use --label",
	"parent_id":     `use "ctxtool new --parent"`,
	"active_branch": `use "ctxtool branch switch"`,
	"branches":      `use "ctxtool branch"`,
}

func (a *app) metaCmd() *cobra.Command {
	var (
		set    []string
		title  string
		labels labelFlags
	)
	cmd := &cobra.Command{
		Use:   "meta CONTEXT",
		Short: "Show or change the metadata of a context",
		Long: `Show the metadata of a context, after applying --set, --title, --label and --unlabel.

--set KEY=VALUE: KEY is title, state, config.NAME, config.NAME.NAME, or any other name for your own
data; VALUE is JSON, or plain text if it is not valid JSON. The value of a label is plain text.
"ctxtool ls --label" lists the contexts with a label.`,
		Example: `  ctxtool meta 7c2f
  ctxtool meta 7c2f --title 'Parser rewrite' --set config.mode=plan
  ctxtool meta 7c2f --label user=ada --unlabel draft`,
		Annotations:       exits("the context has a problem", ofStores...),
		Args:              between(1, 1),
		ValidArgsFunction: a.completeContexts(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("title") {
				set = append(set, "title="+title)
			}
			changes, err := parseChanges(cmd, set)
			if err != nil {
				return err
			}
			given, err := labels.parse(cmd)
			if err != nil {
				return err
			}
			changed := len(changes) > 0 || given != nil || len(labels.unset) > 0
			var opts []ctxdir.Options
			if !changed {
				opts = append(opts, ctxdir.Options{ReadOnly: true})
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				if changed {
					err := c.Update(cmd.Context(), func(m *ctxdir.Metadata) error {
						labels.apply(m, given)
						return apply(m, changes)
					})
					if err != nil {
						return err
					}
				}
				if err := a.printMetadata(c.Metadata()); err != nil {
					return err
				}
				return problemOf(c)
			}, opts...)
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "set the member `KEY=VALUE`; can be repeated")
	cmd.Flags().StringVar(&title, "title", "", "set the title to `TITLE`")
	labels.add(cmd, "set the label `KEY=VALUE`; can be repeated")
	cmd.Flags().StringArrayVar(&labels.unset, "unlabel", nil, "remove the label `KEY`; can be repeated")
	return cmd
}

func parseChanges(cmd *cobra.Command, texts []string) ([]setting, error) {
	var changes []setting
	for _, text := range texts {
		s, err := parseSetting(cmd, "--set", text)
		if err != nil {
			return nil, err
		}
		how, fixed := fixedMembers[s.path[0]]
		switch {
		case fixed:
			err := usage(cmd, "--set: cannot set %q, which ctxtool maintains itself", s.path[0])
			if how != "" {
				err.hint = how
			}
			return nil, err
		case len(s.path) > 1 && s.path[0] != "config":
			return nil, usage(cmd, "--set: cannot set %q: only config has nested members", s.key)
		}
		changes = append(changes, s)
	}
	return changes, nil
}

func apply(m *ctxdir.Metadata, changes []setting) error {
	for _, s := range changes {
		switch {
		case s.key == "title":
			m.Title = s.text
		case s.key == "state":
			m.State = s.value
		case s.key == "config":
			var o folder.Object
			if err := o.UnmarshalJSON(s.value); err != nil {
				return badArgument("", "--set: config must be an object")
			}
			m.Config = s.value
		case s.path[0] == "config":
			if err := s.into(&m.Config, s.path[1:]); err != nil {
				return badArgument("", "--set %s: %v", s.key, err)
			}
		default:
			if err := s.into(&m.Extra, []string{s.key}); err != nil {
				return err
			}
		}
	}
	return nil
}

// printMetadata prints metadata.json; with --json, as a record.
func (a *app) printMetadata(m *ctxdir.Metadata) error {
	if !a.json {
		var b bytes.Buffer
		if err := json.Indent(&b, m.Raw, "", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
		a.out.ExpectJSON()
		_, err := a.out.Write(b.Bytes())
		return err
	}
	_, err := a.out.Write(append(record.MetadataLine(m), '\n'))
	return err
}
