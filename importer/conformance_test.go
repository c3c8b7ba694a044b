package importer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The conformance kit: what every importer guarantees, tried on the samples in testdata and on the real histories that
// CTXDIR_TEST_DATA names. It reads the sources by other means than the package.

// sample is a history in testdata or among the real ones.
type sample struct {
	path   string
	format Format
}

// samples are the histories in testdata: a folder for each format.
func samples(t *testing.T) (out []sample) {
	t.Helper()
	folders, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !slices.Contains(Formats(), Format(f.Name())) {
			continue // seeds of fuzz tests
		}
		for path, err := range Files(filepath.Join("testdata", f.Name())) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, sample{path, Format(f.Name())})
		}
	}
	return out
}

// today is a number that changes from day to day.
func today() int { return int(time.Now().Unix() / (24 * 60 * 60)) }

// realSamples are the real histories of all tools. A short run takes a third of each tool's, and others on another day.
func realSamples(t *testing.T) (out []sample) {
	for folder, format := range map[string]Format{
		"claude-code": ClaudeCode, "multimodal": ClaudeCode, "chatgpt": ChatGPT, "codex": Codex, "opencode": OpenCode,
		"other-gemini-cli": Gemini, "other-pi": Pi, "tree": OpenAssistant, "trajectory": SWEAgent,
	} {
		paths := realData(t, folder)
		first, step := 0, 1
		if testing.Short() {
			step = 3
			first = today() % min(step, len(paths))
		}
		for i := first; i < len(paths); i += step {
			path := paths[i]
			if folder == "trajectory" && strings.HasSuffix(path, ".traj.json") {
				format = OpenAI // a list of messages, and no more
			}
			out = append(out, sample{path, format})
		}
	}
	return out
}

func TestConformance(t *testing.T) {
	all := samples(t)
	seen := map[Format]bool{}
	for _, s := range all {
		seen[s.format] = true
		t.Run(filepath.ToSlash(s.path), func(t *testing.T) { conforms(t, s) })
	}
	for _, f := range Formats() {
		if f != Auto && f != JSONL && !seen[f] {
			t.Errorf("testdata has no sample of %s", f)
		}
	}
}

func TestRealConformance(t *testing.T) {
	for _, s := range realSamples(t) {
		t.Run(filepath.Base(s.path), func(t *testing.T) { conforms(t, s) })
	}
}

// conforms checks the guarantees on one history.
func conforms(t *testing.T, s sample) {
	records, problems := recordsOf(t, s)
	whole := newFakeStore()
	whole.chunk = 100
	got := importFile(t, whole, s.path, Options{})
	if len(got.errs) > 0 || len(got.results) == 0 || int64(len(got.problems)) != problems {
		t.Fatalf("%+v, wanted %d problems", got, problems)
	}
	for _, r := range got.results {
		if r.Format != s.format || r.Added != r.Messages || r.Skipped != 0 {
			t.Errorf("%+v, wanted the format %s and only new messages", r, s.format)
		}
	}
	want := count(records)
	if d := cmp.Diff(want, stored(t, whole)); d != "" {
		t.Errorf("the records of the file are not those of the store: %.3000s", d)
	}
	before := whole.dump()
	for _, r := range importFile(t, whole, s.path, Options{}).results {
		if r.Added != 0 || r.Replaced != 0 || r.Skipped != r.Messages {
			t.Errorf("again: %+v", r)
		}
	}
	if d := cmp.Diff(before, whole.dump()); d != "" {
		t.Errorf("importing again changes the store: %.3000s", d)
	}
	for name, early := range earlyStates(t, s) {
		both := newFakeStore()
		both.chunk = 100
		importFile(t, both, early, Options{})
		importFile(t, both, s.path, Options{})
		if d := cmp.Diff(before, both.dump()); d != "" {
			t.Errorf("%s, then the whole is not the whole: %.3000s", name, d)
		}
	}
	whileWritten(t, s, before, want, problems)
	if isLog(t, s) {
		damagedLine(t, s, want, problems)
	}
}

// whileWritten imports beginnings of a file, as a follower may find them. What is unfinished waits, and is no problem. A
// short run tries a third of the beginnings, and others on another day.
func whileWritten(t *testing.T, s sample, whole string, want map[string]int, problems int64) {
	t.Helper()
	b, err := os.ReadFile(s.path)
	if err != nil || strings.HasSuffix(s.path, ".zst") || strings.Contains(s.path, "storage") {
		return // a folder of files, or no text
	}
	const parts = 9
	first, step := 0, 1
	if testing.Short() {
		step = 3
		first = today() / 3 % step // the third of the files changes each day
	}
	for i := first; i < parts; i += step {
		early := filepath.Join(t.TempDir(), filepath.Base(s.path))
		if err := os.WriteFile(early, b[:len(b)*i/parts], 0o600); err != nil {
			t.Fatal(err)
		}
		store := newFakeStore()
		store.chunk = 100
		if got := importFile(t, store, early, Options{Growing: true}); len(got.errs) > 0 || int64(len(got.problems)) > problems {
			t.Errorf("%d of %d parts are written: %v, problems %v", i, parts, got.errs, got.problems)
		}
		importFile(t, store, s.path, Options{Growing: true})
		if d := cmp.Diff(want, stored(t, store)); d != "" {
			t.Errorf("%d of %d parts, then the whole are not its records: %.3000s", i, parts, d)
		}
		// What a document took back has another name than in its early state.
		if d := cmp.Diff(whole, store.dump()); d != "" && isLog(t, s) && s.format != Gemini {
			t.Errorf("%d of %d parts, then the whole is not the whole: %.3000s", i, parts, d)
		}
	}
}

// earlyStates are files that hold a part of a log: a tool had not written more when they were imported.
func earlyStates(t *testing.T, s sample) map[string]string {
	t.Helper()
	out := map[string]string{}
	if !isLog(t, s) {
		return out
	}
	b, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for name, cut := range map[string]int{"half": len(b) / 2, "a third": len(b) / 3, "all but the end": len(b) - 20} {
		out[name] = filepath.Join(t.TempDir(), filepath.Base(s.path))
		if err := os.WriteFile(out[name], b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// damagedLine puts a torn line into a log: it is reported, and the rest is imported.
func damagedLine(t *testing.T, s sample, want map[string]int, problems int64) {
	t.Helper()
	b, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.IndexByte(b, '\n') + 1
	damaged := slices.Concat(b[:at], []byte("{\"torn\":\"\x00\x00\n"), b[at:])
	path := filepath.Join(t.TempDir(), filepath.Base(s.path))
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	store := newFakeStore()
	got := importFile(t, store, path, Options{})
	if len(got.errs) > 0 || int64(len(got.problems)) != problems+1 {
		t.Errorf("with a torn line: %v, problems %v", got.errs, got.problems)
	}
	if d := cmp.Diff(want, stored(t, store)); d != "" {
		t.Errorf("with a torn line: %.3000s", d)
	}
}

// isLog reports whether a history is a file of lines to which its tool appends, and not compressed.
func isLog(t *testing.T, s sample) bool {
	t.Helper()
	switch s.format {
	case ClaudeCode, Codex, Pi, Copilot:
		return !strings.HasSuffix(s.path, ".zst")
	case Gemini:
		b, err := os.ReadFile(s.path)
		return err == nil && len(bytes.SplitN(bytes.TrimSpace(b), []byte("\n"), 3)) > 1 && b[1] != '\n'
	}
	return false
}

func count(records []any) map[string]int {
	out := map[string]int{}
	for _, r := range records {
		b, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		out[string(b)]++
	}
	return out
}
