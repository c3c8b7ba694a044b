package index_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/archive"
	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/index"
	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/ctxdir/ctxdir/internal/views"
	"github.com/google/uuid"
)

// formatPage is the page that describes the format, with the vectors of this test in its appendix.
const formatPage = "../docs/FORMAT.md"

// The values of the vectors, as the page says them.
var (
	vectorStore   = uuid.MustParse("0198c0de-0000-4000-8000-000000000000")
	vectorContext = uuid.MustParse("0198c0de-0000-7000-8000-000000000001")
	vectorLine    = uuid.MustParse("0198c0de-0000-7000-8000-000000000002")
	vectorIDs     = []uuid.UUID{
		uuid.MustParse("0198c0de-0000-7000-8000-000000000003"), uuid.MustParse("0198c0de-0000-7000-8000-000000000004"),
	}
	vectorTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

const (
	vectorPayload = "A payload, which is a blob.\n"
	vectorFirst   = "log-5d3e9a17-1.jsonl" // the vector
	vectorSecond  = "log-c0ffee42-2.jsonl" // which continues it
	maxFormatPage = 800                    // lines
)

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// vectors returns the blocks of code of the page that have a name, and the number of its lines.
func vectors(t *testing.T) (blocks map[string]string, lines int) {
	t.Helper()
	page := must(os.ReadFile(formatPage))(t)
	blocks = map[string]string{}
	name, inside := "", false
	for line := range strings.Lines(string(page)) {
		lines++
		rest, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && inside:
			inside = false
		case fence:
			name, inside = strings.TrimSpace(rest), true
		case inside && name != "":
			blocks[name] += line
		}
	}
	return blocks, lines
}

// textVector returns a block as it is, and hexVector the bytes of one in hexadecimal digits.
func textVector(t *testing.T, name string) []byte {
	t.Helper()
	all, _ := vectors(t)
	if all[name] == "" {
		t.Fatalf("%s has no block %q", formatPage, name)
	}
	return []byte(all[name])
}

func hexVector(t *testing.T, name string) []byte {
	t.Helper()
	return must(hex.DecodeString(strings.Join(strings.Fields(string(textVector(t, name))), "")))(t)
}

// same compares bytes with a vector.
func same(t *testing.T, name string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: the program writes\n%s", name, hexLines(got))
	}
}

func hexLines(b []byte) string {
	var lines []string
	for part := range slices.Chunk(b, 48) {
		lines = append(lines, hex.EncodeToString(part))
	}
	return strings.Join(lines, "\n")
}

// vectorFolder returns an empty folder of a context.
func vectorFolder(t *testing.T) (folder index.Folder, path string) {
	t.Helper()
	path = t.TempDir()
	fsys := must(vfs.OS(path))(t)
	t.Cleanup(func() { _ = fsys.Close() })
	return index.FolderOf(vectorStore, vectorContext, fsys), path
}

// vectorMetadata is the metadata of the vectors.
func vectorMetadata() *ctxfolder.Metadata {
	return &ctxfolder.Metadata{
		ID: vectorContext, Title: "An example", ActiveBranch: "main",
		Branches: []ctxfolder.Branch{{Name: "main", Line: vectorLine}},
		Lines:    []ctxfolder.Line{{ID: vectorLine, Folder: "branch-main"}},
		Revision: 1, CreatedAt: vectorTime, UpdatedAt: vectorTime,
	}
}

// vectorEnvelopes are the messages of the vectors: the second one has a payload.
func vectorEnvelopes() (all [][]byte) {
	sum := blob.SumOf([]byte(vectorPayload))
	bodies := []string{
		`{"role":"user","content":"Hello"}`,
		fmt.Sprintf(`{"role":"assistant","content":{"$blob":"%s","size":%d}}`, sum, len(vectorPayload)),
	}
	prev := uuid.Nil
	for i, id := range vectorIDs {
		role, _, _ := message.Describe([]byte(bodies[i]))
		env := message.Envelope{
			ID: id, Line: vectorLine, Position: int64(i), Prev: prev, StoredAt: vectorTime.Add(time.Duration(i+1) * time.Second), Payloads: i,
			Branch: "main", Role: role, Body: []byte(bodies[i]),
		}
		all, prev = append(all, env.AppendTo(nil)), id
	}
	return all
}

func vectorBeginning(number uint64, state []byte) journal.Beginning {
	return journal.Beginning{
		Context: vectorContext, Store: vectorStore, Number: number, State: state,
		CreatedAt: vectorTime.Add(time.Duration(number-1) * time.Minute),
	}
}

// withoutSpace removes the blank space from the end of a log.
func withoutSpace(b []byte) []byte { return append(bytes.TrimRight(b, "\n"), '\n') }

// TestVectorLog: the program writes the log of the page, and reads its records from it.
func TestVectorLog(t *testing.T) {
	t.Parallel()
	folder, path := vectorFolder(t)
	raw := must(ctxfolder.CommittableMetadata(vectorMetadata()))(t)
	envelopes := vectorEnvelopes()
	empty := []byte(`{"lines":[],"newest":0,"metadata":null}`)
	l := must(journal.BeginAt(folder.Logs, vectorFirst, vectorBeginning(1, empty), journal.Position{}))(t)
	defer l.Close()
	for _, commit := range [][]journal.Item{
		{{Kind: journal.Metadata, Body: raw}, {Kind: journal.Add, Body: envelopes[0]}},
		{index.PayloadItem(blob.SumOf([]byte(vectorPayload)), []byte(vectorPayload)), {Kind: journal.Add, Body: envelopes[1]}},
	} {
		_, end, err := l.Write(commit, true, true)
		check(t, err)
		check(t, l.SyncTo(end))
	}
	check(t, l.EndWith(vectorSecond))
	got := withoutSpace(must(os.ReadFile(filepath.Join(path, vectorFirst)))(t))
	want := textVector(t, "log")
	same(t, "log", got, want)
	lines := slices.Collect(bytes.Lines(want))
	if record := hexVector(t, "record"); len(lines) < 3 || !bytes.Equal(record, lines[2]) {
		t.Errorf("the record of the page is no line of its log; wanted\n%s", hexLines(lines[2]))
	}
	readVectorLog(t, want)
}

func readVectorLog(t *testing.T, content []byte) {
	t.Helper()
	folder, path := vectorFolder(t)
	check(t, os.WriteFile(filepath.Join(path, vectorFirst), append(bytes.Clone(content), '\n'), 0o600))
	l := must(journal.Open(folder.Logs, vectorFirst))(t)
	defer l.Close()
	var kinds []string
	tail, err := l.Read(func(r journal.Record) error {
		kinds = append(kinds, fmt.Sprintf("%d %s %d %v", r.Seq, r.Kind, r.Mark, r.More))
		return nil
	}, nil)
	check(t, err)
	want := []string{"1 metadata 0 true", "2 append 0 false", "3 payload 0 true", "4 append 2 false"}
	if tail != journal.Clean || l.Next() != vectorSecond || l.At().Seq != 4 || !slices.Equal(kinds, want) {
		t.Errorf("%v, next %q, at %d: %q", tail, l.Next(), l.At().Seq, kinds)
	}
}

// TestVectorSegment: the program seals the log of the page as the segment of the page, and reads the messages from that.
func TestVectorSegment(t *testing.T) {
	t.Parallel()
	folder, path := vectorFolder(t)
	content := textVector(t, "log")
	check(t, os.WriteFile(filepath.Join(path, vectorFirst), append(bytes.Clone(content), '\n'), 0o600))
	check(t, os.WriteFile(filepath.Join(path, vectorSecond), bytes.Repeat([]byte("\n"), 64<<10), 0o600))
	ix := index.Open(folder, index.Options{})
	defer ix.Close()
	check(t, ix.Rotate()) // begins the next log
	check(t, ix.Seal(archive.Options{}))
	names := must(os.ReadDir(filepath.Join(path, ctxfolder.Segments)))(t)
	if len(names) != 1 {
		t.Fatalf("%d segments", len(names))
	}
	name := names[0].Name()
	if page := must(os.ReadFile(formatPage))(t); !bytes.Contains(page, []byte("`segments/"+name+"`")) {
		t.Errorf("the page does not name the segment %s", name)
	}
	want := hexVector(t, "segment")
	same(t, "segment", must(os.ReadFile(filepath.Join(path, ctxfolder.Segments, name)))(t), want)
	readVectorSegment(t, name, want)
}

func readVectorSegment(t *testing.T, name string, content []byte) {
	t.Helper()
	folder, path := vectorFolder(t)
	check(t, os.Mkdir(filepath.Join(path, ctxfolder.Segments), 0o700))
	check(t, os.WriteFile(filepath.Join(path, ctxfolder.Segments, name), content, 0o600))
	s := must(archive.Open(folder.Segments, name))(t)
	defer s.Close()
	for damage := range s.Verify() {
		t.Errorf("%s at byte %d: %v", damage.Part, damage.Offset, damage.Err)
	}
	spans := must(s.Spans())(t)
	want := []archive.Span{{Line: vectorLine, From: 0, To: 2, Least: vectorIDs[0], Greatest: vectorIDs[1]}}
	if !slices.Equal(spans, want) || s.From().Seq != 0 || s.To().Seq != 4 || s.Context() != vectorContext {
		t.Errorf("spans %v, records %d to %d of %s", spans, s.From().Seq+1, s.To().Seq, s.Context())
	}
	var kinds []string
	for o, err := range s.Others(0) {
		check(t, err)
		kinds = append(kinds, fmt.Sprintf("%d %s %v %d", o.Seq, o.Kind, o.More, len(o.Body)))
	}
	raw := must(ctxfolder.CommittableMetadata(vectorMetadata()))(t)
	if w := []string{fmt.Sprintf("1 metadata true %d", len(raw)), "3 payload true 0"}; !slices.Equal(kinds, w) {
		t.Errorf("other records %q", kinds)
	}
	// The index reads it without a log, and says that one is missing.
	ix := index.Open(folder, index.Options{})
	defer ix.Close()
	entries := must(ix.Entries(vectorLine, 0, 9))(t)
	envelopes := vectorEnvelopes()
	for i := range entries {
		e := &entries[i]
		if b := must(ix.ReadOne(e))(t); !bytes.Equal(b, envelopes[i]) || e.ID != vectorIDs[i] || e.Seq != uint64(2*i+2) || e.Payloads != i {
			t.Errorf("position %d: %+v, %s", i, e, b)
		}
		if at, ok, err := ix.Find(vectorLine, e.ID, 9); !ok || err != nil || at.Position != int64(i) {
			t.Errorf("%s is found at %d: %v", e.ID, at.Position, err)
		}
	}
	if all := must(ix.Problems())(t); len(entries) != 2 || len(all) != 1 {
		t.Errorf("%d messages, problems %v", len(entries), all)
	}
	readVectorView(t, folder.Logs, &entries[0], envelopes[0])
}

// readVectorView: the view of a message is its envelope with a newline. Another content counts as an edit.
func readVectorView(t *testing.T, fsys vfs.FS, e *index.Entry, envelope []byte) {
	t.Helper()
	dir := &ctxfolder.Dir{ID: vectorContext, FS: fsys}
	check(t, dir.CreateMessage("branch-main", e.ID, envelope, e.StoredAt()))
	if _, is, err := views.Read(dir, "branch-main", e); is != views.Exact {
		t.Errorf("the view is %v: %v", is, err)
	}
	edited := bytes.Replace(envelope, []byte("Hello"), []byte("Goodbye"), 1)
	check(t, dir.ReplaceMessage("branch-main", e.ID, edited, e.StoredAt().Add(time.Hour)))
	if _, is, err := views.Read(dir, "branch-main", e); is != views.Edited {
		t.Errorf("the edited view is %v: %v", is, err)
	}
	dir.ForgetFolders()
}

// TestVectorBlob: the program reads the payload from the blob of the page, and writes the same head.
func TestVectorBlob(t *testing.T) {
	t.Parallel()
	fsys := must(vfs.OS(t.TempDir()))(t)
	defer fsys.Close()
	sum := blob.SumOf([]byte(vectorPayload))
	if page := must(os.ReadFile(formatPage))(t); !bytes.Contains(page, []byte(sum.String())) {
		t.Errorf("the page does not have the name %s", sum)
	}
	s := blob.Open(fsys)
	_, err := s.Rewrite([]byte(vectorPayload))
	check(t, err)
	written := must(vfs.ReadFile(fsys, blob.Path(sum), 1<<20))(t)
	want := hexVector(t, "blob")
	if len(want) < 24 || !bytes.Equal(written[:24], want[:24]) {
		t.Errorf("the program writes\n%s", hexLines(written))
	}
	check(t, fsys.Remove(blob.Path(sum)))
	check(t, vfs.WriteNew(fsys, blob.Path(sum), want))
	if b, err := s.Get(sum, 1<<20); err != nil || string(b) != vectorPayload {
		t.Errorf("%q, %v", b, err)
	}
}

// TestVectorMetadata: the program writes the metadata.json of the page, and reads its values.
func TestVectorMetadata(t *testing.T) {
	t.Parallel()
	want := textVector(t, "metadata.json")
	same(t, "metadata.json", must(vectorMetadata().Encode())(t), want)
	file := must(ctxfolder.ParseMetadata(want))(t)
	committed := must(ctxfolder.ParseMetadata(must(ctxfolder.CommittableMetadata(vectorMetadata()))(t)))(t)
	if m, is := ctxfolder.Reconcile(committed, file); is != ctxfolder.ProjectionCurrent || m.Title != "An example" {
		t.Errorf("%v: %+v", is, m)
	}
	edited := must(ctxfolder.ParseMetadata(bytes.Replace(want, []byte("An example"), []byte("Another"), 1)))(t)
	if m, is := ctxfolder.Reconcile(committed, edited); is != ctxfolder.ProjectionEdited || m.Title != "Another" {
		t.Errorf("edited: %v: %+v", is, m)
	}
	change := bytes.TrimSuffix(textVector(t, "change"), []byte("\n"))
	next := vectorMetadata()
	next.Title, next.Revision, next.UpdatedAt = "Renamed", 2, vectorTime.Add(time.Minute)
	next.Lines[0].Archived, next.Lines[0].ArchivedBytes = 1, 250
	same(t, "change", must(vectorMetadata().Change(next))(t), change)
	m := must(committed.Apply(change))(t)
	if m.Title != "Renamed" || m.Revision != 2 || m.Lines[0].Archived != 1 {
		t.Errorf("changed: %+v", m)
	}
}

// TestFormatPage: the page is short enough to be read, and has no other vectors.
func TestFormatPage(t *testing.T) {
	t.Parallel()
	blocks, lines := vectors(t)
	if lines > maxFormatPage {
		t.Errorf("%s has %d lines, more than %d", formatPage, lines, maxFormatPage)
	}
	for name := range blocks {
		if !slices.Contains([]string{"log", "record", "segment", "blob", "metadata.json", "change"}, name) {
			t.Errorf("no test compares the block %q", name)
		}
	}
}
