package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/spf13/cobra"
)

func (a *app) refCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ref",
		Short: "Refer to lines of files, and find them again",
		Long: `Refer to lines of files instead of copying code, and find these lines again when the files have
changed. References are stored with a message, beside its content; tool calls and their results
imply further references.`,
		Example: `  ctxtool ref add 7c2f store.go:10-24 --text "This loop leaks."
  ctxtool ref check 7c2f`,
		Annotations: exits("some lines changed or are missing", ofStores...),
		Args:        cobra.ArbitraryArgs,
		RunE:        needVerb,
	}
	cmd.AddCommand(a.refAddCmd(), a.refLsCmd(), a.refCheckCmd())
	return cmd
}

func (a *app) refAddCmd() *cobra.Command {
	var f refFlags
	cmd := &cobra.Command{
		Use:   "add CONTEXT FILE[:A-B]…",
		Short: "Append a message with references to lines of files",
		Long: `Append a message with references to lines A to B of files, to one line (FILE:A), or to whole
files. The text of the message is --text, or else the names of the references; the lines
themselves are not copied. A reference holds the path relative to the root, the line numbers, a
checksum, the first three lines and, in a git repository, the commit and the uncommitted changes.`,
		Example: `  ctxtool ref add 7c2f store.go:10-24 --text "This loop leaks."
  ctxtool ref add 7c2f go.mod cmd/main.go:7`,
		Annotations: exits("", ofStores...),
		Args:        between(2, -1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.completeContexts(1)(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.role == "" || len(f.role) > 64 {
				return usage(cmd, "--role must be 1 to 64 bytes")
			}
			draft, err := f.draft(cmd.Context(), args[1:])
			if err != nil {
				return err
			}
			return a.withContext(cmd.Context(), args[0], func(c *ctxdir.Context) error {
				b, err := branchOf(c, f.branch)
				if err != nil {
					return err
				}
				at, err := b.Append(cmd.Context(), draft)
				if err != nil {
					return err
				}
				return a.printAppended(c, b, at)
			})
		},
	}
	a.branchFlag(cmd, &f.branch, "branch", "append to `BRANCH` instead of the active one")
	cmd.Flags().StringVar(&f.role, "role", "user", "set the `ROLE` of the message")
	cmd.Flags().StringVar(&f.text, "text", "", "set the `TEXT` of the message")
	f.rootFlag(cmd)
	return cmd
}

// draft is a message with references to arguments.
func (f *refFlags) draft(ctx context.Context, args []string) (d ctxdir.Draft, err error) {
	root, err := f.workspaceRoot()
	if err != nil {
		return d, err
	}
	var refs []reference.Ref
	var names []string
	for _, arg := range args {
		file, from, to, err := splitReference(arg)
		if err != nil {
			return d, err
		}
		if file, err = filepath.Abs(file); err != nil {
			return d, err
		}
		ref, err := reference.New(ctx, root, file, from, to)
		if err != nil {
			return d, fmt.Errorf("refer to %s: %w", arg, err)
		}
		refs, names = append(refs, ref), append(names, ref.String())
	}
	if f.text == "" {
		f.text = strings.Join(names, "\n")
	}
	d.References, d.CreatedAt = reference.Encode(refs), time.Now().UTC()
	d.Body = record.Encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{f.role, f.text})
	return d, nil
}

var linesOfArgument = regexp.MustCompile(`^(.+):([0-9]+)(?:-([0-9]+))?$`)

// splitReference splits FILE:A-B.
func splitReference(arg string) (file string, from, to int64, err error) {
	parts := linesOfArgument.FindStringSubmatch(arg)
	if parts == nil {
		return arg, 0, 0, nil
	}
	if _, err := os.Lstat(arg); err == nil {
		return arg, 0, 0, nil // the name of a file ends like this
	}
	from, err = strconv.ParseInt(parts[2], 10, 64)
	to = from
	if err == nil && parts[3] != "" {
		to, err = strconv.ParseInt(parts[3], 10, 64)
	}
	if err != nil || from < 1 || to < from {
		return "", 0, 0, badArgument("lines count from 1, as in FILE:10-24", "%q: lines not found", arg)
	}
	return parts[1], from, to, nil
}
