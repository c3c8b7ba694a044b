package ctxdir_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// The golden stores are small stores of every state, as builds of the past left them:
// testdata/stores/v1/STATE.tar.zst, in which STORE is the store and shown.json is what that build showed of it.
// Every later build opens them, shows the same, and goes on writing to them. golden_make_test.go makes those of the
// present build.

// shownStore is what a build shows of a store: contexts by title.
type shownStore map[string]shownContext

type shownContext struct {
	Active     string
	State      string
	Config     string
	Branches   map[string][]shownMessage
	Prompts    map[string]string // of branches that have one
	Trash      []string          // kinds of the items in the trash folder, sorted
	Labels     map[string]string `json:",omitempty"`
	Kind       string            `json:",omitempty"`
	ExternalID string            `json:",omitempty"`
	Lines      []string          `json:",omitempty"` // names of removed lines, sorted
	Findings   []string          `json:",omitempty"` // of a check, with severity and kind, sorted
}

type shownMessage struct {
	Position    int64
	ID          string
	Role        string `json:",omitempty"`
	Type        string `json:",omitempty"`
	CreatedAt   string `json:",omitempty"`
	OriginID    string `json:",omitempty"`
	Body        string `json:",omitempty"` // a long one as its SHA-256
	Edited      bool   `json:",omitempty"`
	Unavailable bool   `json:",omitempty"`
}

// showStore reads everything that a store shows. A context without a title has its id.
func showStore(t *testing.T, s *ctxdir.Store) shownStore {
	t.Helper()
	shown := shownStore{}
	for id, err := range s.IDs() {
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		m := c.Metadata()
		sc := shownContext{Active: m.ActiveBranch, State: string(m.State), Branches: map[string][]shownMessage{}, Prompts: map[string]string{}}
		sc.Config = string(m.Config)
		for _, b := range must(c.Branches(t.Context())) {
			br := must(c.Branch(b.Name))
			messages := []shownMessage{}
			for m, err := range br.Messages(t.Context(), 0, ctxdir.End) {
				if err != nil {
					t.Fatalf("%s, %s: %v", c.Metadata().Title, b.Name, err)
				}
				messages = append(messages, showMessage(t, m))
			}
			if int64(len(messages)) != b.Messages {
				t.Errorf("%s, %s: %d messages, the list says %d", m.Title, b.Name, len(messages), b.Messages)
			}
			sc.Branches[b.Name] = messages
			if p, err := must(c.Branch(b.Name)).SystemPrompt(t.Context()); err != nil {
				t.Errorf("%s, %s: system prompt: %v", m.Title, b.Name, err)
			} else if p != nil {
				sc.Prompts[b.Name] = short(p)
			}
		}
		for item, err := range s.Trash(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(item.Path, "/trash/") {
				sc.Trash = append(sc.Trash, string(item.Kind))
			} else {
				sc.Lines = append(sc.Lines, item.Name)
			}
		}
		slices.Sort(sc.Trash)
		slices.Sort(sc.Lines)
		sc.Labels, sc.Kind, sc.ExternalID = m.Labels, m.Kind, m.ExternalID
		shown[strings.Join([]string{m.Title, map[bool]string{true: id.String()}[m.Title == ""]}, "")] = sc
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return shown
}

func showMessage(t *testing.T, m *ctxdir.Message) shownMessage {
	t.Helper()
	s := shownMessage{Position: m.Position, ID: m.ID.String(), Unavailable: m.Unavailable != nil}
	if s.Unavailable {
		return s
	}
	s.Role, s.Type, s.OriginID, s.Edited = m.Role, m.Type, m.OriginID, m.Edited
	if !m.CreatedAt.IsZero() {
		s.CreatedAt = m.CreatedAt.Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	body, err := m.Body(t.Context())
	if err != nil {
		s.Unavailable = true
		return s
	}
	s.Body = short(body)
	return s
}

// short is a text, or the SHA-256 of a long one.
func short(b []byte) string {
	if len(b) > 400 {
		return fmt.Sprintf("sha256:%x, %d bytes", sha256.Sum256(b), len(b))
	}
	return string(b)
}

func TestGoldenStores(t *testing.T) {
	files, err := filepath.Glob("testdata/stores/*/*.tar.zst")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden stores:", err)
	}
	for _, file := range files {
		format := filepath.Base(filepath.Dir(file))
		state := strings.TrimSuffix(filepath.Base(file), ".tar.zst")
		t.Run(format+"/"+state, func(t *testing.T) {
			t.Parallel()
			testGolden(t, file, state)
		})
	}
}

// TestGoldenStoresStay: the stores of a format are those of its SHA256SUMS. TestMakeGoldenStores writes that file, and nobody makes
// the stores of a released version again: programs of users wrote such stores.
func TestGoldenStoresStay(t *testing.T) {
	folders, err := filepath.Glob("testdata/stores/v*")
	if err != nil || len(folders) == 0 {
		t.Fatal("no golden stores:", err)
	}
	for _, folder := range folders {
		want := string(must(os.ReadFile(filepath.Join(folder, "SHA256SUMS"))))
		if diff := gocmp.Diff(want, goldenSums(t, folder)); diff != "" {
			t.Errorf("%s has other stores than when they were made (-then +now):\n%s", folder, diff)
		}
	}
}

// goldenSums returns the checksums of the golden stores in a folder, as sha256sum prints them.
func goldenSums(t *testing.T, folder string) string {
	t.Helper()
	var sums strings.Builder
	for _, file := range must(filepath.Glob(filepath.Join(folder, "*.tar.zst"))) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(must(os.ReadFile(file))), filepath.Base(file))
	}
	return sums.String()
}

// testGolden opens a store, compares what it shows, checks it, appends to each branch, and does all that again.
func testGolden(t *testing.T, file, state string) {
	damaged := strings.HasPrefix(state, "damaged")
	dir := t.TempDir()
	kit.UnpackGolden(t, file, dir)
	var want shownStore
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join(dir, "shown.json"))), &want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "STORE")
	read := must(ctxdir.Open(path, ctxdir.Options{ReadOnly: true}))
	shown := withFindings(t, read, showStore(t, read))
	if diff := gocmp.Diff(want, shown); diff != "" {
		t.Errorf("opened for reading only it shows (-then +now):\n%s", diff)
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	s := must(ctxdir.Open(path))
	defer s.Close()
	if !damaged {
		noErrors(t, s, "as it was")
	}
	for id, err := range s.IDs() {
		if err != nil {
			t.Fatal(err)
		}
		goOn(t, must(s.Open(t.Context(), id)), want, damaged)
	}
	got := showStore(t, s)
	for title, c := range want {
		c.Findings = nil
		want[title] = c
	}
	if damaged || state == "metadata-edited" { // damaged and edited files go to the trash
		for title, c := range got {
			c.Trash = want[title].Trash
			got[title] = c
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("after an append to each branch it shows (-wanted +shown):\n%s", diff)
	}
	if damaged {
		if _, err := s.Repair(t.Context(), ctxdir.RepairOptions{All: true}); err != nil {
			t.Error(err)
		}
	}
	noErrors(t, s, "in the end")
	g := &golden{T: t, dir: path, s: s}
	for id, err := range s.IDs() {
		g.do(err)
		c := must(s.Open(t.Context(), id))
		everyOperation(g, c)
		g.do(c.Close())
	}
	noErrors(t, s, "after every operation")
}

// withFindings adds what a check finds in each context.
func withFindings(t *testing.T, s *ctxdir.Store, shown shownStore) shownStore {
	t.Helper()
	titles := map[uuid.UUID]string{}
	for sum, err := range s.List(t.Context(), ctxdir.ListOptions{Kind: "*"}) {
		if err != nil {
			t.Fatal(err)
		}
		titles[sum.ID] = cmp.Or(sum.Title, sum.ID.String())
	}
	for f, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		if err != nil {
			t.Fatal(err)
		}
		c := shown[titles[f.Context]]
		c.Findings = append(c.Findings, string(f.Severity)+" "+string(f.Kind))
		slices.Sort(c.Findings)
		shown[titles[f.Context]] = c
	}
	return shown
}

// goOn appends a message to each branch of a context, and to what the store should show.
func goOn(t *testing.T, c *ctxdir.Context, want shownStore, damaged bool) {
	t.Helper()
	defer c.Close()
	m := c.Metadata()
	title := m.Title
	if title == "" {
		title = c.ID().String()
	}
	for _, name := range slices.Sorted(maps.Keys(want[title].Branches)) {
		messages := want[title].Branches[name]
		body := said("user", "One more on "+name)
		at, err := must(c.Branch(name)).Append(t.Context(), ctxdir.Draft{Body: body})
		if err != nil {
			t.Fatalf("%s, %s: %v", title, name, err)
		}
		if at.Position != int64(len(messages)) {
			t.Errorf("%s, %s: appended at %d, behind %d messages", title, name, at.Position, len(messages))
		}
		want[title].Branches[name] = append(messages, shownMessage{Position: at.Position, ID: at.ID.String(), Role: "user", Body: string(body)})
	}
	if err := c.Admin().Seal(t.Context()); err != nil && (!damaged || !errors.Is(err, ctxdir.ErrDamaged)) {
		t.Error(err)
	}
}

// noErrors fails where a check finds an error.
func noErrors(t *testing.T, s *ctxdir.Store, when string) {
	t.Helper()
	for f, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
		if err != nil {
			t.Error(err)
		} else if f.Severity == "error" {
			t.Errorf("%s: %s: %s %s", when, f.Kind, f.Path, f.Detail)
		}
	}
}
