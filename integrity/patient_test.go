package integrity_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// state says where the messages of a patient are.
type state struct {
	views bool // with files
	log   bool // the newest are in a log
}

func (s state) String() string { return fmt.Sprintf("views %v, log %v", s.views, s.log) }

var states = []state{{true, false}, {true, true}, {false, false}, {false, true}}

// patient is a context that a test damages. It has 24 messages on main, of which alt shows 12 and has 6 of its own. Some
// have a payload.
type patient struct {
	*testing.T
	state
	root string
	id   uuid.UUID
	want map[string][]string    // bodies by branch
	ids  map[string][]uuid.UUID // likewise
}

func (p *patient) open() *engine.Store {
	p.Helper()
	s, err := engine.Open(p.root, engine.WithoutPause(), engine.WithSealBytes(-1), engine.WithFiles(engine.FilesOnReturn))
	check(p.T, err)
	return s
}

// do runs f with the open context.
func (p *patient) do(f func(c *engine.Context) error) {
	p.Helper()
	s := p.open()
	c, err := s.Context(context.Background(), p.id)
	check(p.T, err)
	check(p.T, f(c), c.Close(), s.Close())
}

func body(n int) []byte {
	text := fmt.Sprint("short ", n)
	if n%5 == 0 {
		text = fmt.Sprint("payload ", n, strings.Repeat(" long", 60))
	}
	return fmt.Appendf(nil, `{"role":"user","content":%q}`, text)
}

func appendTo(b *engine.Branch, from, to int) error {
	for n := from; n < to; n++ {
		if _, err := b.Append(context.Background(), engine.Draft{Body: body(n)}); err != nil {
			return err
		}
	}
	return nil
}

func newPatient(t *testing.T, is state) *patient {
	t.Helper()
	ctx := context.Background()
	p := &patient{T: t, state: is, root: filepath.Join(t.TempDir(), "store")}
	s, err := engine.Init(
		p.root, engine.WithoutPause(), engine.WithSealBytes(-1), engine.WithTextThreshold(200), engine.WithFiles(engine.FilesOnReturn),
	)
	check(t, err)
	c, err := s.Create(ctx, engine.Metadata{Title: "patient"})
	check(t, err)
	p.id = c.ID()
	check(t, appendTo(c.Active(), 0, 16))
	alt, err := c.Active().Fork(ctx, "alt", 12)
	check(t, err, appendTo(alt, 100, 103), c.Seal(ctx), appendTo(c.Active(), 16, 20))
	if !is.log {
		check(t, c.Seal(ctx))
	}
	check(t, appendTo(c.Active(), 20, 24), appendTo(alt, 103, 106))
	if !is.log {
		check(t, c.Seal(ctx))
	}
	p.want, p.ids = map[string][]string{}, map[string][]uuid.UUID{}
	for name, b := range map[string]*engine.Branch{"main": c.Active(), "alt": alt} {
		all, err := b.Load(ctx)
		check(t, err)
		for _, m := range all {
			raw, err := m.Body(ctx)
			check(t, err, m.Unavailable)
			p.want[name], p.ids[name] = append(p.want[name], string(raw)), append(p.ids[name], m.ID)
		}
	}
	check(t, c.Flush(ctx), c.Close(), s.Close())
	if !is.views {
		check(t, os.RemoveAll(p.path("messages")))
	}
	return p
}

// path returns the path of a file of the context.
func (p *patient) path(parts ...string) string {
	return filepath.Join(append([]string{p.root, p.id.String()}, parts...)...)
}

// view returns the path of the file of the n-th message of main.
func (p *patient) view(n int) string {
	return p.path("messages", "branch-main", p.ids["main"][n].String()+".json")
}

// files returns the paths that a pattern matches, sorted.
func (p *patient) files(pattern string) []string {
	p.Helper()
	all, err := filepath.Glob(p.path(pattern))
	check(p.T, err)
	if len(all) == 0 {
		p.Fatalf("no %s", pattern)
	}
	return all
}

// segment returns the path of the n-th segment.
func (p *patient) segment(n int) string {
	all := p.files("segments/*.zst")
	slices.SortFunc(all, func(a, b string) int { return number(a) - number(b) })
	return all[n]
}

func number(path string) (n int) {
	_, _ = fmt.Sscanf(filepath.Base(path), "%d-", &n)
	return n
}

// newestLog returns the path of the log with records.
func (p *patient) newestLog() string {
	all := p.files("log-*.jsonl")
	largest := all[0]
	for _, name := range all {
		if b, _ := os.ReadFile(name); strings.Count(string(b), `"kind":"append"`) > 0 {
			largest = name
		}
	}
	return largest
}

// change changes the content of a file, which keeps its time if keep is set.
func (p *patient) change(path string, keep bool, f func(b []byte) []byte) {
	p.Helper()
	info, err := os.Stat(path)
	check(p.T, err)
	b, err := os.ReadFile(path)
	check(p.T, err, os.WriteFile(path, f(b), 0o600))
	if keep {
		check(p.T, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
}

func replacing(old, by string) func(b []byte) []byte {
	return func(b []byte) []byte {
		s := strings.Replace(string(b), old, by, 1)
		if s == string(b) {
			panic("there is no " + old)
		}
		return []byte(s)
	}
}

// check returns what a check with ReadData finds.
func (p *patient) check() (found []integrity.Finding) {
	p.Helper()
	s := p.open()
	for f, err := range checking.Check(context.Background(), s, nil, checking.Options{ReadData: true}) {
		check(p.T, err)
		found = append(found, f)
	}
	check(p.T, s.Close())
	return found
}

// repair returns what a repair did, and how many problems remain.
func (p *patient) repair(o checking.Options) (done []integrity.Repaired, left int) {
	p.Helper()
	s := p.open()
	o.Progress = func(x checking.Progress) { left = x.Left }
	for r, err := range checking.Repair(context.Background(), s, nil, o) {
		check(p.T, err)
		done = append(done, r)
	}
	check(p.T, s.Close())
	return done, left
}

// lost returns how many messages are not as they should be, and fails if one is another one.
func (p *patient) lost() (lost int) {
	p.Helper()
	p.do(func(c *engine.Context) error {
		for name, want := range p.want {
			b, err := c.Branch(name)
			if err != nil {
				return err
			}
			all, err := b.Load(context.Background())
			if err != nil {
				return err
			}
			for i, m := range all {
				raw, err := m.Body(context.Background())
				switch {
				case m.Unavailable != nil || err != nil:
					lost++
				case i >= len(want) || string(raw) != want[i]:
					p.Errorf("%s, position %d: %.80s", name, i, raw)
				}
			}
			lost += max(len(want)-len(all), 0)
		}
		return nil
	})
	return lost
}

// is compares two kinds. Of records that are missing nothing says where they were.
func is(a, b integrity.Kind) bool {
	history := []integrity.Kind{integrity.KindLog, integrity.KindSegment}
	return a == b || slices.Contains(history, a) && slices.Contains(history, b)
}

// heal checks and repairs the patient: the check has to find a kind, and as many messages may be lost afterwards. Then a
// check is clean, and another repair does nothing.
func (p *patient) heal(kind integrity.Kind, severity integrity.Severity, lost int, o checking.Options) {
	p.Helper()
	found := p.check()
	if !slices.ContainsFunc(found, func(f integrity.Finding) bool { return is(f.Kind, kind) && f.Severity == severity }) {
		p.Errorf("a check finds no %s %s: %+v", severity, kind, found)
	}
	dry := o
	dry.DryRun = true
	if planned, _ := p.repair(dry); len(planned) == 0 {
		p.Error("a repair plans nothing")
	}
	if again := p.check(); len(again) != len(found) {
		p.Errorf("a dry run changed something: %+v, before %+v", again, found)
	}
	done, left := p.repair(o)
	if len(done) == 0 {
		p.Error("a repair does nothing")
	}
	if n := p.lost(); n != lost || (left > 0) != (lost > 0) {
		p.Errorf("%d are lost, wanted %d; %d problems remain: %+v", n, lost, left, done)
	}
	for _, f := range p.check() {
		if f.Kind != integrity.KindLost || lost == 0 {
			p.Errorf("after the repair: %+v", f)
		}
	}
	if done, _ := p.repair(o); len(done) > 0 {
		p.Errorf("another repair: %+v", done)
	}
	p.do(func(c *engine.Context) error { // it goes on
		if err := appendTo(c.Active(), 1000, 1002); err != nil {
			return err
		}
		p.want["main"] = append(p.want["main"], string(body(1000)), string(body(1001)))
		return c.Seal(context.Background())
	})
	if problems := p.problems(); len(problems) > 0 {
		p.Errorf("the history is damaged: %v", problems)
	}
}

func (p *patient) problems() (all []index.Problem) {
	p.do(func(c *engine.Context) (err error) {
		all, err = c.Index.Problems()
		return err
	})
	return all
}

// archive says in the metadata that the messages have no files, and changes nothing else.
func (p *patient) archive() {
	p.do(func(c *engine.Context) error {
		return c.Change(context.Background(), func(m *engine.Metadata) error {
			for i := range m.Lines {
				m.Lines[i].Archived = 1 << 40
			}
			return nil
		})
	})
	check(p.T, os.RemoveAll(p.path("messages")))
}

// healSome is heal where the number of lost messages does not matter.
func (p *patient) healSome(kind integrity.Kind, severity integrity.Severity) {
	p.Helper()
	found := p.check()
	if !slices.ContainsFunc(found, func(f integrity.Finding) bool { return is(f.Kind, kind) && f.Severity == severity }) {
		p.Errorf("a check finds no %s %s: %+v", severity, kind, found)
	}
	if done, _ := p.repair(checking.Options{}); len(done) == 0 {
		p.Error("a repair does nothing")
	}
	p.lost()
	for _, f := range p.check() {
		if f.Kind != integrity.KindLost && f.Kind != integrity.KindStructure {
			p.Errorf("after the repair: %+v", f)
		}
	}
	if done, _ := p.repair(checking.Options{}); len(done) > 0 {
		p.Errorf("another repair: %+v", done)
	}
}
