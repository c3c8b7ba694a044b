package storetest_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/assemble"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/internal/listing"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/moment"
	"github.com/ctxdir/ctxdir/reference"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// The kinds of canaries: one for each place where a store can have what a person wrote.
const (
	kText       kind = "text"       // of a message
	kResult     kind = "result"     // of a tool, in a blob
	kAttachment kind = "attachment" // a payload that came as a stream
	kReference  kind = "reference"  // the lines of a file that a reference repeats
	kPacked     kind = "packed"     // an archived message
	kVersion    kind = "version"    // the version that a replacement replaced
	kEdited     kind = "edited"     // a version that a person wrote into the file
	kAnswer     kind = "answer"     // a message that an assembled context repeats, in derived/answers
	kMoment     kind = "moment"     // of a message
	kMirror     kind = "mirror"     // a prompt of Codex, which its history has twice and from which the title is made
	kTail       kind = "tail"       // the end of a branch, which a rewind takes off
	kNoted      kind = "noted"      // the end of another branch, from which a moment was made
	kNote       kind = "note"       // that moment
	kTitle      kind = "title"      // of the context
	kLabel      kind = "label"
	kState      kind = "state"  // of the context
	kPrompt     kind = "prompt" // the system prompt of the active branch
	kBranch     kind = "branch" // the name of another branch, in a folder's name too
	kBranchText kind = "branchtext"
	kBranchNote kind = "branchnote" // the state of that branch
	kBranchRole kind = "branchrole" // its system prompt
	kOther      kind = "other"      // another context, to which nothing is done
)

var kinds = []kind{
	kText, kResult, kAttachment, kReference, kPacked, kVersion, kEdited, kAnswer, kMoment, kMirror, kTail, kNoted, kNote, kTitle, kLabel,
	kState, kPrompt, kBranch, kBranchText, kBranchNote, kBranchRole, kOther,
}

// canaryStore is a store with a canary of each kind. Copies of its folder differ in nothing else.
type canaryStore struct {
	dir      string
	imported uuid.UUID // the context of the history of Codex
	prompt   uuid.UUID // its message
	moment   uuid.UUID
	keep     int64 // how many messages of the active branch come before the tail
	files    []savedFile
}

// savedFile is a file or, without content, a folder of a store.
type savedFile struct {
	name    string
	folder  bool
	content []byte
	at      time.Time
}

// save reads the files of the store.
func (x *canaryStore) save(t *testing.T) {
	t.Helper()
	kit.Check(t, filepath.WalkDir(x.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == x.dir {
			return err
		}
		info, err := d.Info()
		f := savedFile{name: strings.TrimPrefix(path, x.dir), folder: d.IsDir()}
		if err == nil && !f.folder {
			f.at = info.ModTime()
			f.content, err = os.ReadFile(path)
		}
		x.files = append(x.files, f)
		return err
	}))
}

// clone makes the same store in another folder.
func (x *canaryStore) clone(t *testing.T) *canaryStore {
	t.Helper()
	y := *x
	y.dir = filepath.Join(t.TempDir(), "store")
	kit.Check(t, os.Mkdir(y.dir, 0o700))
	for _, f := range x.files {
		if f.folder {
			kit.Check(t, os.Mkdir(y.dir+f.name, 0o700))
			continue
		}
		kit.Check(t, os.WriteFile(y.dir+f.name, f.content, 0o600), os.Chtimes(y.dir+f.name, f.at, f.at))
	}
	return &y
}

// workID is the context with the canaries, and messageID the message of a kind in it.
func workID() uuid.UUID          { return kit.TestID(70000) }
func messageID(k kind) uuid.UUID { return kit.TestID(70100 + int(k.word()[0])) }
func messageIDs(ks ...kind) (ids []uuid.UUID) {
	for _, k := range ks {
		ids = append(ids, messageID(k))
	}
	return ids
}

// askedBranch has the message of which a context was assembled, and notedBranch the one from which a moment was made.
const (
	askedBranch = "asked"
	notedBranch = "noted"
)

// openWith opens a store whose calls meet a plan. Nothing is sealed by itself.
func openWith(t *testing.T, dir string, p *faultPlan, more ...engine.Option) *ctxdir.Store {
	t.Helper()
	calls := engine.WithCalls(func(disk vfs.FS) vfs.FS { return brittleFS{disk, p} })
	opts := append([]engine.Option{calls, engine.WithSealBytes(-1), engine.WithoutPause()}, more...)
	s := kit.Must[*ctxdir.Store](t)(ctxdir.Init(dir, knobs.Options(opts...)))
	search.Attach(s)
	p.store = s
	return s
}

// build makes the store in a state.
func (st *canaryState) build(t *testing.T) *canaryStore {
	t.Helper()
	ctx := t.Context()
	x := &canaryStore{dir: filepath.Join(t.TempDir(), "store")}
	s := openWith(t, x.dir, &faultPlan{}, st.options...)
	x.begin(t, s, st.legacy)
	c := kit.Must[*ctxdir.Context](t)(s.Open(ctx, workID()))
	x.fill(t, s, c)
	x.importHistory(t, s)
	other := kit.Must[*ctxdir.Context](t)(s.Create(ctx, ctxdir.Metadata{Title: kOther.word()}))
	appendText(t, other.Active(), kOther, "")
	kit.Check(t, other.Close())
	if st.change != nil {
		st.change(t, x, s, c)
	}
	a := kit.Must[*assemble.Assembly](t)(assemble.Build(ctx, s, assemble.Request{
		Context: workID(), Branch: askedBranch, Tokens: assemble.Estimate(),
	}))
	if !strings.Contains(a.Text, kAnswer.word()) {
		t.Fatalf("the assembled text lacks the newest messages: %s", a.Text)
	}
	at := x.dir
	if st.killed { // what the writer left, had it been killed now
		x.dir = filepath.Join(t.TempDir(), "store")
		kit.Check(t, copyTree(at, x.dir))
	}
	kit.Check(t, c.Close(), s.Close())
	x.summarise(t)
	x.verify(t, st)
	x.save(t)
	return x
}

// verify fails the test unless each canary is in the store, and those of caches in the caches.
func (x *canaryStore) verify(t *testing.T, st *canaryState) {
	t.Helper()
	found := canaries(t, x.dir)
	in := func(k kind, file string) {
		if len(found[k]) == 0 || !strings.Contains(strings.Join(found[k], " "), file) {
			t.Errorf("%s has no %s", cmp.Or(file, "the store"), k)
		}
	}
	for _, k := range kinds {
		in(k, "")
	}
	in(kText, search.File)
	in(kTitle, listing.SummariesFile)
	if st.name != "fresh" { // an answer counts only while its messages have files
		in(kAnswer, "derived/answers/")
	}
}

// summarise lists the contexts some time after their last commit, so that the cache of lists has their titles.
func (x *canaryStore) summarise(t *testing.T) {
	t.Helper()
	at := time.Now().Add(-10 * time.Second)
	dir := filepath.Join(x.dir, workID().String())
	for _, path := range append(kit.Must[[]string](t)(filepath.Glob(dir+"/log-*.jsonl")), dir+"/metadata.json", dir) {
		kit.Check(t, os.Chtimes(path, at, at))
	}
	s := openWith(t, x.dir, &faultPlan{})
	for _, err := range s.List(t.Context(), ctxdir.ListOptions{Kind: "*"}) {
		kit.Check(t, err)
	}
	kit.Check(t, s.Close())
}

// begin makes the context, with what a legacy context can hold if it is a migrated one.
func (x *canaryStore) begin(t *testing.T, s *ctxdir.Store, migrated bool) {
	t.Helper()
	ctx := t.Context()
	quoted := func(k kind) json.RawMessage { return json.RawMessage(`"` + k.word() + `"`) }
	c := kit.Must[*ctxdir.Context](t)(s.Create(ctx, ctxdir.Metadata{
		ID: workID(), Title: "About " + kTitle.word(), State: quoted(kState),
		Branches: []ctxdir.BranchMetadata{{SystemPrompt: quoted(kPrompt)}},
	}))
	main := c.Active()
	appendText(t, main, kText, "")
	appendText(t, main, kResult, strings.Repeat(" and more words", 2000))
	kit.Must[ctxdir.AppendResult](t)(main.Append(ctx, ctxdir.Draft{
		ID: messageID(kAttachment), Body: json.RawMessage(`{"role":"user","content":{"data":""}}`),
		Attachments: []ctxdir.Attachment{{At: "/content/data", Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("\xff\x00" + strings.Repeat(kAttachment.word()+" ", 100))), nil
		}}},
	}))
	kit.Check(t, c.Close())
	if !migrated {
		return
	}
	path := filepath.Join(t.TempDir(), workID().String()+".json")
	_, err := s.Rollback(ctx, workID(), ctxdir.RollbackOptions{To: path})
	kit.Check(t, err)
	_, err = s.Remove(ctx, workID())
	kit.Check(t, err)
	_, err = s.Purge(ctx, ctxdir.PurgeOptions{All: true})
	kit.Check(t, err)
	_, err = s.Migrate(ctx, path, ctxdir.MigrateOptions{})
	kit.Check(t, err)
}

// fill adds what only a context of this format has.
func (x *canaryStore) fill(t *testing.T, s *ctxdir.Store, c *ctxdir.Context) {
	t.Helper()
	ctx := t.Context()
	main := c.Active()
	kit.Check(t, c.Update(ctx, func(m *ctxdir.Metadata) error {
		m.Labels = map[string]string{"project": kLabel.word()}
		return nil
	}))
	appendBody(t, main, kEdited, "as it was committed")
	x.edit(t, c)
	packed := kit.Must[*ctxdir.Branch](t)(c.NewBranch(ctx, "packed"))
	appendText(t, packed, kPacked, "")
	_, err := s.Archive(ctx, ctxdir.ArchiveOptions{Contexts: []uuid.UUID{workID()}, Branch: "packed"})
	kit.Check(t, err, c.Refresh(ctx))
	appendText(t, main, kVersion, "")
	kit.Check(t, main.Replace(ctx, messageID(kVersion), ctxdir.Draft{Body: json.RawMessage(`{"role":"user","content":"another version"}`)}))
	_, err = main.Append(ctx, ctxdir.Draft{
		ID: messageID(kReference), Body: json.RawMessage(`{"role":"user","content":"see the file"}`),
		References: reference.Encode([]reference.Ref{{File: "src/a.go", Lines: reference.Lines{From: 3, To: 4}, Context: kReference.word()}}),
	})
	kit.Check(t, err)
	appendBody(t, main, kMoment, "a message from which a moment is made")
	x.moment = addMoment(t, c, kMoment, messageID(kMoment))

	gone := kit.Must[*ctxdir.Branch](t)(c.NewBranch(ctx, kBranch.word()))
	kit.Check(t, c.Update(ctx, func(m *ctxdir.Metadata) error {
		for i := range m.Branches {
			if m.Branches[i].Name == kBranch.word() {
				m.Branches[i].State = json.RawMessage(`"` + kBranchNote.word() + `"`)
				m.Branches[i].SystemPrompt = json.RawMessage(`"` + kBranchRole.word() + `"`)
			}
		}
		return nil
	}))
	appendText(t, gone, kBranchText, "")

	asked := kit.Must[*ctxdir.Branch](t)(c.NewBranch(ctx, askedBranch))
	appendText(t, asked, kAnswer, "")
	x.keep = kit.Must[int64](t)(main.Len(ctx))
	appendText(t, main, kTail, "")
	noted := kit.Must[*ctxdir.Branch](t)(c.NewBranch(ctx, notedBranch))
	appendText(t, noted, kNoted, "")
	addMoment(t, c, kNote, messageID(kNoted))
}

func appendText(t *testing.T, b *ctxdir.Branch, k kind, more string) {
	appendBody(t, b, k, k.word()+more)
}

func appendBody(t *testing.T, b *ctxdir.Branch, k kind, text string) {
	t.Helper()
	body := fmt.Appendf(nil, `{"role":"user","content":%q}`, text)
	kit.Must[ctxdir.AppendResult](t)(b.Append(t.Context(), ctxdir.Draft{ID: messageID(k), Body: body}))
}

func addMoment(t *testing.T, c *ctxdir.Context, k kind, from uuid.UUID) uuid.UUID {
	t.Helper()
	added := kit.Must[[]moment.Moment](t)(moment.Add(t.Context(), c, moment.Moment{
		Type: moment.Decision, Content: "We decided to keep " + k.word(), From: []uuid.UUID{from},
	}))
	return added[0].ID
}

// edit writes another text into the file of a message.
func (x *canaryStore) edit(t *testing.T, c *ctxdir.Context) {
	t.Helper()
	kit.Check(t, c.Flush(t.Context()))
	path := filepath.Join(x.dir, workID().String(), "messages", "branch-main", messageID(kEdited).String()+".json")
	b := kit.Must[[]byte](t)(os.ReadFile(path))
	kit.Write(t, path, bytes.Replace(b, []byte("as it was committed"), []byte("as somebody wants it: "+kEdited.word()), 1))
}

// importHistory imports a history of Codex, whose prompt is in a record of the conversation and in one of the screen.
func (x *canaryStore) importHistory(t *testing.T, s *ctxdir.Store) {
	t.Helper()
	ctx := t.Context()
	samples := kit.Must[[]string](t)(filepath.Glob("../../importer/testdata/codex/rollout-*.jsonl"))
	b := kit.Must[[]byte](t)(os.ReadFile(samples[0]))
	path := filepath.Join(t.TempDir(), filepath.Base(samples[0]))
	kit.Write(t, path, bytes.ReplaceAll(b, []byte("How fast does the wheel turn?"), []byte("How fast does the "+kMirror.word()+" turn?")))
	for r, err := range importer.Import(ctx, s.Importer(), path, importer.Options{}) {
		kit.Check(t, err)
		x.imported = r.Context
	}
	kit.Check(t, s.Use(ctx, x.imported, func(c *ctxdir.Context) error {
		for m, err := range c.Active().Messages(ctx, 0, ctxdir.End) {
			if err != nil {
				return err
			}
			if m.Role == "user" && bytes.Contains(m.Stored, []byte(kMirror.word())) {
				x.prompt = m.ID
				return nil
			}
		}
		return errors.New("the history has no prompt")
	}))
}
