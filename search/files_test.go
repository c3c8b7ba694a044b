package search_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
)

// TestMentions finds the files of messages in the forms of several frameworks.
func TestMentions(t *testing.T) {
	for _, c := range [][2]string{
		{`{"input":{"file_path":"/a/b.go","content":"x"}}`,
			"written /a/b.go text/plain 1 true /input/file_path"},
		{`{"input":{"file_path":"/a/b.go","limit":3}}`,
			"read /a/b.go text/plain -1 true /input/file_path"},
		{`{"input":{"edits":[{"old":"x"}],"filePath":"b.x"}}`,
			"written b.x  -1 true /input/filePath"},
		{`{"file":{"filePath":"b.py","content":"ab","numLines":1}}`,
			"read b.py text/plain 2 true /file/filePath"},
		{`{"arguments":"{\"path\":\"c.png\"}"}`,
			"read c.png image/png -1 false /arguments/path"},
		{`{"arguments":"{\"path\":\"c\"}","arguments2":"{\"path\":\"c\",\"content\":\"\"}"}`,
			"read c  -1 false /arguments/path|written c  0 true /arguments2/path"},
		{`{"input":"*** Begin Patch\n*** Update File: d.go\n@@\n*** Add File: e.go"}`,
			"written d.go text/plain -1 true /input|written e.go text/plain -1 true /input"},
		{`{"path":"two\nlines"}`,
			""},
		{`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}]`,
			"attached  image/png 4 false /0/source/data"},
		{`[{"type":"document","title":"a.txt","source":{"type":"base64","media_type":"text/plain","data":"aGVsbG8="}}]`,
			"attached a.txt text/plain 5 true /0/source/data = hello"},
		{`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"not base64"}}]`,
			"attached  text/plain 10 true /0/source/data"},
		{`[{"type":"file","file":{"filename":"b.md","file_data":"data:text/markdown;base64,aGVsbG8="}}]`,
			"attached b.md text/markdown 5 true /0/file/file_data = hello"},
		{`[{"type":"file","mime":"text/plain","filename":"c.txt","url":"data:text/plain;base64,AP8="}]`,
			"attached c.txt text/plain 2 false /0/url"},
		{`{"parts":[{"inlineData":{"mimeType":"audio/wav","data":"AAAA"}}]}`,
			"attached  audio/wav 3 false /parts/0/inlineData/data"},
		{`{"attachments":[{"id":"x","name":"d.pdf","mime_type":"application/pdf","size":77}]}`,
			"attached d.pdf application/pdf 77 false "},
		{`{"attachments":[{"type":"file","path":"/e/f.go","displayName":"f.go"}]}`,
			"attached /e/f.go text/plain -1 true /attachments/0/path"},
		{`{"role":"user","content":"a file path: x.go","name":"ada"}`,
			""},
		{`{"url":"https://example.org/a.go"}`,
			""},
	} {
		message, want := c[0], c[1]
		mentions, texts := search.Mentions([]byte(message))
		got := strings.Join(mentions, "|")
		if len(texts) > 0 {
			got += " = " + strings.Join(texts, "|")
		}
		if got != want {
			t.Errorf("%s:\n got %q\nwant %q", message, got, want)
		}
	}
	many := `[` + strings.Repeat(`{"path":"a"},`, 10) + `{"path":"` + strings.Repeat("b", 2000) + `"}]`
	if mentions, _ := search.Mentions([]byte(many)); len(mentions) != 1 {
		t.Errorf("%d files", len(mentions))
	}
}

// touch is a message that touches one file, and what a list says about that file.
type touch struct {
	body []byte
	want string // access, path, type, size and text
}

// touched returns a random message that touches a file.
func touched(t *testing.T, r *rand.Rand) touch {
	name := fmt.Sprint([]string{"src/", "docs/", ""}[r.IntN(3)], "f", r.IntN(5), []string{".go", ".md", ".png"}[r.IntN(3)])
	media := map[string]string{".go": "text/plain", ".md": "text/markdown", ".png": "image/png"}[path.Ext(name)]
	var body any
	var want string
	content := strings.Repeat("line of content "+fmt.Sprint(r.IntN(1e6))+"\n", 1+r.IntN(200))
	switch r.IntN(4) {
	case 0:
		body = map[string]any{"type": "tool_use", "input": map[string]any{"file_path": name}}
		want = fmt.Sprint("read ", name, " ", media, " -1 ", media != "image/png")
	case 1:
		body = map[string]any{"type": "tool_use", "input": map[string]any{"file_path": name, "content": content}}
		want = fmt.Sprint("written ", name, " ", media, " ", len(content), " true")
	case 2: // a payload that is text
		body = map[string]any{"type": "document", "title": name + ".txt", "source": map[string]any{
			"type": "base64", "media_type": "text/plain", "data": []byte("attachedword " + content)}}
		want = fmt.Sprint("attached ", name, ".txt text/plain ", len(content)+13, " true")
	case 3: // one that is not
		body = map[string]any{"type": "document", "title": name + ".bin", "source": map[string]any{
			"type": "base64", "media_type": "application/octet-stream", "data": append([]byte{0, 0xff}, "hiddenword "+content...)}}
		want = fmt.Sprint("attached ", name, ".bin application/octet-stream ", len(content)+13, " false")
	}
	b, err := json.Marshal(map[string]any{"role": "assistant", "content": []any{body}})
	check(t, err)
	return touch{b, want}
}

// fileScan is what a list should have: a message that a branch shows, and the file it touches.
type fileScan struct {
	*shown
	path, access, media string
	text                bool
	line                string
}

// TestFilesAgainstScan lists the files of a store that changes, and compares the lists with a scan.
func TestFilesAgainstScan(t *testing.T) {
	r, s := newRand(11), openStore(t, t.TempDir())
	x := openIndex(t, s)
	l := &life{t: t, s: s, x: x, r: r}
	wants := map[uuid.UUID]string{}
	fill := func(b *ctxdir.Branch, n int) {
		for range n {
			m := touched(t, r)
			at, err := b.Append(t.Context(), ctxdir.Draft{Body: m.body})
			check(t, err)
			wants[at.ID] = m.want
		}
	}
	for range 3 {
		c, err := s.Create(t.Context(), ctxdir.Metadata{})
		check(t, err)
		l.all = append(l.all, c)
		fill(c.Active(), 20)
	}
	ctx := t.Context()
	for _, step := range []step{
		{"fresh", func() {}},
		{"fork", func() {
			b, err := l.all[0].Active().Fork(ctx, "fork", 7)
			check(t, err)
			fill(b, 5)
		}},
		{"rewind", func() { check(t, l.all[1].Active().Rewind(ctx, 8)) }},
		{"archive", func() { l.results(s.Archive(ctx, ctxdir.ArchiveOptions{All: true})) }},
		{"erase", l.erase},
		{"collect", func() { l.collect(ctx) }},
		{"rebuild", func() { check(t, x.Rebuild(ctx)) }},
	} {
		step.do()
		_, err := x.Update(ctx, search.UpdateOptions{})
		check(t, err)
		all := scanFiles(t, s, wants)
		for range queries() {
			q, met := randomFileQuery(r, all)
			compareFiles(t, step.name, x, q, all, met)
			compareCounts(t, step.name, x, q, all, met)
		}
	}
	for word, want := range map[string]bool{"attachedword": true, "hiddenword": false} {
		if n := found(t, x, search.Query{Text: word}); n > 0 != want {
			t.Errorf("%q: %d hits", word, n)
		}
		for h, err := range x.Search(ctx, search.Query{Text: word}) {
			if check(t, err); !strings.Contains(h.Snippet, word) || len(h.Marks) == 0 || h.Pointer != "/content/0/source/data" {
				t.Errorf("snippet %q at %s", h.Snippet, h.Pointer)
			}
		}
	}
}

// scanFiles returns the files of what branches show, the newest first.
func scanFiles(t *testing.T, s *ctxdir.Store, wants map[uuid.UUID]string) (all []fileScan) {
	for _, m := range everything(t, s) {
		want := wants[m.id]
		part := strings.Fields(want)
		all = append(all, fileScan{m, part[1], part[0], part[2], part[4] == "true", want})
	}
	slices.SortStableFunc(all, func(a, b fileScan) int { return int(b.at - a.at) })
	return all
}

func randomFileQuery(r *rand.Rand, all []fileScan) (q search.FileQuery, met func(m *fileScan) bool) {
	like := all[r.IntN(len(all))]
	var conditions []func(m *fileScan) bool
	when := func(set func(), condition func(m *fileScan) bool) {
		if r.IntN(4) == 0 {
			set()
			conditions = append(conditions, condition)
		}
	}
	when(func() { q.Path = "f1*" }, func(m *fileScan) bool { return strings.HasPrefix(path.Base(m.path), "f1") })
	when(func() { q.Access = like.access }, func(m *fileScan) bool { return m.access == like.access })
	when(func() { q.Type = "text/*" }, func(m *fileScan) bool { return strings.HasPrefix(m.media, "text/") })
	when(func() { q.IsText = &like.text }, func(m *fileScan) bool { return m.text == like.text })
	when(func() { q.Contexts = []uuid.UUID{like.context} }, func(m *fileScan) bool { return m.context == like.context })
	when(func() { q.Branch = "fork" }, func(m *fileScan) bool { return slices.Contains(m.branches, "fork") })
	when(func() { q.Until = timeOf(like.at) }, func(m *fileScan) bool { return m.at < like.at })
	when(func() { q.Text = "content OR attachedword" }, func(m *fileScan) bool { return m.terms["content"] || m.terms["attachedword"] })
	q.Newest = r.IntN(3) == 0
	return q, func(m *fileScan) bool {
		return !slices.ContainsFunc(conditions, func(c func(m *fileScan) bool) bool { return !c(m) })
	}
}

// compareFiles reads a list page by page, and compares it with a scan.
func compareFiles(t *testing.T, when string, x *search.Index, q search.FileQuery, all []fileScan, met func(m *fileScan) bool) {
	t.Helper()
	var want, got []string
	newest := map[string]bool{}
	for i := range all {
		m := &all[i]
		key := fmt.Sprint(m.context, m.path, m.line)
		if m.access != search.Attached {
			key = fmt.Sprint(m.context, m.path)
		}
		if !met(m) || q.Newest && newest[key] {
			continue
		}
		newest[key] = true
		want = append(want, fmt.Sprint(m.key(), m.branches, " ", m.line))
	}
	for q.Limit = 7; ; {
		n := 0
		for f, err := range x.Files(t.Context(), q) {
			check(t, err)
			m := shown{context: f.Context, line: f.Line, position: f.Position}
			got = append(got, fmt.Sprint(m.key(), f.Branches, " ", f.Access, " ", f.Path, " ", f.Type, " ", f.Size, " ", f.IsText))
			q.Cursor = f.Cursor
			n++
		}
		if n < q.Limit {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %+v: got %d files, want %d:\n%q\n%q", when, q, len(got), len(want), got, want)
	}
}

// compareCounts compares how often each path is touched with a scan.
func compareCounts(t *testing.T, when string, x *search.Index, q search.FileQuery, all []fileScan, met func(m *fileScan) bool) {
	t.Helper()
	want := map[string]search.PathCount{}
	contexts := map[string]bool{}
	for i := range all {
		m := &all[i]
		if !met(m) {
			continue
		}
		c, ok := want[m.path]
		if c.Path, c.Times = m.path, c.Times+1; !ok {
			c.Last = timeOf(m.at)
		}
		if key := fmt.Sprint(m.context, m.path); !contexts[key] {
			contexts[key] = true
			c.Contexts++
		}
		want[m.path] = c
	}
	q.Newest = false
	got, err := x.CountPaths(t.Context(), q)
	check(t, err)
	for i, c := range got {
		if w := want[c.Path]; w.Times != c.Times || w.Contexts != c.Contexts || !w.Last.Equal(c.Last) {
			t.Errorf("%s: %+v: %+v, want %+v", when, q, c, w)
		}
		if i > 0 && got[i-1].Times < c.Times {
			t.Errorf("%s: %+v comes after %+v", when, c, got[i-1])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %+v: %d paths, want %d", when, q, len(got), len(want))
	}
	q.Limit = 2
	if first, err := x.CountPaths(t.Context(), q); err != nil || !slices.Equal(first, got[:min(2, len(got))]) {
		t.Errorf("%s: the first of %+v: %+v, %v", when, got, first, err)
	}
}

// TestCountPaths: the answer to a call does not count again, one without a call does.
func TestCountPaths(t *testing.T) {
	s := openStore(t, t.TempDir())
	x := openIndex(t, s)
	c, err := s.Create(t.Context(), ctxdir.Metadata{})
	check(t, err)
	for _, body := range []string{
		`{"role":"assistant","content":[{"type":"tool_use","name":"Edit","input":{"file_path":"a.go","old_string":"x","new_string":"y"}}]}`,
		`{"role":"tool","toolUseResult":{"filePath":"a.go","oldString":"x","newString":"y"}}`,
		`{"role":"assistant","content":[{"type":"tool_use","name":"Edit","input":{"file_path":"a.go","old_string":"x","new_string":"y"}}]}`,
		`{"role":"tool","toolUseResult":{"filePath":"b.go","oldString":"x","newString":"y"}}`,
	} {
		_, err := c.Active().Append(t.Context(), ctxdir.Draft{Body: []byte(body)})
		check(t, err)
	}
	_, err = x.Update(t.Context(), search.UpdateOptions{})
	check(t, err)
	got, err := x.CountPaths(t.Context(), search.FileQuery{Access: search.Written})
	check(t, err)
	if len(got) != 2 || got[0].Path != "a.go" || got[0].Times != 2 || got[1].Path != "b.go" || got[1].Times != 1 {
		t.Errorf("%+v", got)
	}
}
