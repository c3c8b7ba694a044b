package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "man [DIR]",
		Short: "Print the manual page, or write one for each verb",
		Long: `Print the manual page of ctxtool. With DIR, write ctxtool.1 and a page for each verb, such as
ctxtool-show.1, to DIR. The pages repeat the text of --help.`,
		Example:     "  ctxtool man > ctxtool.1\n  ctxtool man ~/.local/share/man/man1",
		Annotations: exits(""),
		Args:        between(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := io.WriteString(a.out, manual(cmd.Root()))
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManuals(cmd.Root(), args[0])
		},
	}
}

func writeManuals(cmd *cobra.Command, dir string) error {
	cmd.InitDefaultHelpFlag()
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(manual(cmd)), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if err := writeManuals(c, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff is a manual page in the language of man(7).
type roff struct{ strings.Builder }

// manual is the page of a command.
func manual(cmd *cobra.Command) string {
	p := &roff{}
	v := version()
	date, _, _ := strings.Cut(v.Time, "T")
	p.macro("TH", strings.ToUpper(pageName(cmd)), "1", date, "ctxtool "+v.Version, "ctxtool")
	p.macro("SH", "NAME")
	p.text(pageName(cmd) + " - " + cmd.Short)
	p.macro("SH", "SYNOPSIS")
	p.macro("B", cmd.CommandPath())
	p.text(strings.TrimPrefix(useLine(cmd), cmd.CommandPath()+" "))
	p.macro("SH", "DESCRIPTION")
	p.paragraphs(cmp.Or(cmd.Long, cmd.Short+"."))
	p.verbs(cmd)
	p.flags("OPTIONS", cmd.LocalFlags())
	p.flags("GLOBAL OPTIONS", cmd.InheritedFlags())
	p.macro("SH", "EXIT STATUS")
	for line := range strings.Lines(cmd.Annotations[exitsKey]) {
		status, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		p.macro("TP", "6")
		p.macro("B", status)
		p.text(text)
	}
	p.macro("SH", "EXAMPLES")
	p.verbatim(cmd.Example)
	p.seeAlso(cmd)
	return p.String()
}

// macro writes a request line for troff.
func (p *roff) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, arg := range args {
		fmt.Fprintf(p, ` "%s"`, strings.ReplaceAll(escape(arg), `"`, `\(dq`))
	}
	p.WriteByte('\n')
}

// text writes lines that troff fills, and escapes a line that begins like a macro.
func (p *roff) text(text string) {
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if line = escape(line); strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		p.WriteString(line + "\n")
	}
}

// escape protects characters that troff would change: it turns a bare hyphen into another sign than the one to type.
var escape = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", `\|.\|.\|.`).Replace

func (p *roff) paragraphs(text string) {
	first := true
	plain.Paragraphs(text, func(paragraph string, verbatim bool) {
		if !first {
			p.macro("PP")
		}
		if first = false; verbatim {
			p.verbatim(paragraph)
		} else {
			p.text(plain.Wrap(paragraph, 78))
		}
	})
}

// verbatim writes lines that troff does not fill.
func (p *roff) verbatim(text string) {
	p.macro("EX")
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		p.text(line)
	}
	p.macro("EE")
}

func (p *roff) verbs(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	p.macro("SH", "VERBS")
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			p.macro("TP")
			p.macro("BR", pageName(c), "(1)")
			p.text(c.Short)
		}
	}
}

func (p *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.macro("SH", title)
	flags.VisitAll(func(f *pflag.Flag) {
		value, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		p.macro("TP")
		p.macro("BI", name, " "+value)
		if !slices.Contains([]string{"", "0", "0s", "[]", "false"}, f.DefValue) {
			text += " (default " + f.DefValue + ")"
		}
		p.text(text)
	})
}

func (p *roff) seeAlso(cmd *cobra.Command) {
	if !cmd.HasParent() {
		return
	}
	p.macro("SH", "SEE ALSO")
	p.macro("BR", pageName(cmd.Parent()), "(1)")
}
