package privacy_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/histories"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/privacy"
	"github.com/ctxdir/ctxdir/transcript"
)

// leaks are found in cleaned texts by rules that have nothing to do with the filter.
type leaks struct {
	parts, left, paths, projects, identifiers, code, refused int
	words, kept                                              int
	examples                                                 []string
}

var (
	pathLike   = regexp.MustCompile(`[\w.-]+/[\w.-]+|\b\w+\.(?:go|ts|tsx|js|py|md|json|yml|yaml|txt|rs|sh|html|css)\b|[A-Z]:\\`)
	identifier = regexp.MustCompile(`\b[a-z]+[A-Z]\w*|\b\w+_\w+|\b[A-Za-z]+\d\w*`)
	codeLine   = regexp.MustCompile(`[{};]\s*$|\)\s*:\s*$|:=|=>|\w\(.*\)\s*$|^\s*(?:def|func|class|import|return|const|let|var|#include)\s`)
	wordRun    = regexp.MustCompile(`[A-Za-z]+`)
)

// TestLeaks measures what the filter leaves in real conversations: every text, thought, call and result of a tool.
func TestLeaks(t *testing.T) {
	dir := os.Getenv("CTXDIR_TEST_DATA")
	if dir == "" {
		t.Skip("CTXDIR_TEST_DATA names no folder with conversations")
	}
	s, err := ctxdir.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for file, err := range importer.Files(dir) {
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range importer.Import(t.Context(), histories.Into(s), file, importer.Options{}) {
			if err != nil {
				continue // some files are no history
			}
		}
	}
	names, err := moment.KnownNames(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	f := privacy.NewFilter(names...)
	var all, prose leaks
	for sum, err := range s.List(t.Context(), ctxdir.ListOptions{}) {
		if err != nil {
			continue
		}
		err := s.Use(t.Context(), sum.ID, func(c *ctxdir.Context) error {
			project := ""
			if label := sum.Labels["project"]; label != "" {
				project = path.Base(filepath.ToSlash(label))
			}
			for m, err := range c.Active().Messages(t.Context(), 0, ctxdir.End) {
				if err != nil {
					return err
				}
				body, err := m.Texts(t.Context())
				if err != nil || message.IsBookkeeping(m.Role) || transcript.Bookkeeping(body) {
					continue
				}
				for _, p := range transcript.Parts(body) {
					all.look(f, p.Text, project)
					if p.Kind == transcript.Text {
						prose.look(f, p.Text, project)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, l := range map[string]*leaks{"all parts": &all, "texts": &prose} {
		t.Logf("%s: %d, refused %d, left over in %d (%.2f %%): paths %d, project names %d, identifiers %d, code %d; %.0f %% of words kept",
			name, l.parts, l.refused, l.left, 100*float64(l.left)/float64(max(l.parts, 1)), l.paths, l.projects, l.identifiers, l.code,
			100*float64(l.kept)/float64(max(l.words, 1)))
		for _, x := range l.examples {
			t.Logf("left over: %s", x)
		}
		if l.parts == 0 || l.paths+l.projects+l.identifiers > 0 || l.left*500 > l.parts {
			t.Errorf("%s: more is left over than 0.2 %%, or a path or a name", name)
		}
	}
}

func (l *leaks) look(f *privacy.Filter, text, project string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	l.parts++
	cleaned, err := f.Clean(text)
	if err != nil {
		l.refused++
		return
	}
	before := l.paths + l.projects + l.identifiers + l.code
	count := func(n *int, is bool, example string) {
		if is {
			*n++
			if len(l.examples) < 20 {
				l.examples = append(l.examples, example)
			}
		}
	}
	if found := pathLike.FindString(cleaned); found != "" {
		count(&l.paths, true, found)
	}
	if found := identifier.FindString(cleaned); found != "" {
		count(&l.identifiers, true, found)
	}
	if len(project) > 2 {
		count(&l.projects, strings.Contains(" "+strings.Join(wordRun.FindAllString(cleaned, -1), " ")+" ", " "+project+" "), project)
	}
	flat := " " + strings.Join(wordRun.FindAllString(cleaned, -1), " ") + " "
	for line := range strings.Lines(text) {
		words := wordRun.FindAllString(line, -1)
		is := len(words) >= 4 && len(line) < 400 && codeLine.MatchString(line)
		if is && strings.Contains(flat, " "+strings.Join(words, " ")+" ") {
			count(&l.code, true, strings.TrimSpace(line))
			break
		}
	}
	if l.paths+l.projects+l.identifiers+l.code > before {
		l.left++
	}
	l.words += len(strings.Fields(text))
	l.kept += len(strings.Fields(cleaned)) - strings.Count(cleaned, "[")
}
