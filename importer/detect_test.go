package importer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	claude := line("prompt u1 - a")
	for name, test := range map[string]struct {
		content string
		want    Format
		err     error
	}{
		"claude":                   {claude, ClaudeCode, nil},
		"claude, BOM and space":    {bom + "\r\n  " + claude + "\r\n", ClaudeCode, nil},
		"claude behind NUL":        {strings.Repeat("\x00", 1<<20) + claude, ClaudeCode, nil},
		"claude behind noise":      {"noise\n42\n[1]\n{\"type\":\"user\",\"mess\n" + claude, ClaudeCode, nil},
		"claude behind noise, NUL": {"noise\n\x00\x00" + claude, ClaudeCode, nil},
		"claude behind others":     {`{"silly":"this"}` + "\n" + claude, ClaudeCode, nil},
		"claude, the rest cut off": {claude[:60], ClaudeCode, nil},
		"claude, summary":          {`{"type":"summary","summary":"x","leafUuid":"y"}`, ClaudeCode, nil},
		"claude, a line of 5 MB": {`{"parentUuid":null,"sessionId":"s","type":"user","message":"` + strings.Repeat("x", 5<<20) + `"}`,
			ClaudeCode, nil},
		"chatgpt":                   {"[" + exportOf("a", "a<") + "]", ChatGPT, nil},
		"chatgpt, pretty":           {"{\n \"title\": \"x\",\n \"mapping\": {\n}}", ChatGPT, nil},
		"chatgpt, large":            {"[{\"title\":\"x\",\n\"mapping\":{\"a\":\"" + strings.Repeat("x", 5<<20) + "\"}}]", ChatGPT, nil},
		"openai":                    {`[ {"role":"user","content":"x"}]`, OpenAI, nil},
		"openai, lines":             {`{"role":"user","content":"x"}` + "\n" + `{"role":"user","content":"x"}`, OpenAI, nil},
		"openai, request":           {"{\n\"model\":\"m\",\n\"messages\":[{\"role\":\"user\"}]}", OpenAI, nil},
		"jsonl":                     {`{"a":1}` + "\n" + `{"b":1}`, JSONL, nil},
		"codex":                     {`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{}}`, Codex, nil},
		"codex, slice":              {`{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"role":"user"}}`, Codex, nil},
		"opencode":                  {"{\n \"info\": {\"id\":\"ses_1\"},\n \"messages\": []}", OpenCode, nil},
		"opencode, one line":        {`{"info":{"id":"ses_1"},"messages":[]}`, OpenCode, nil},
		"gemini":                    {`{"sessionId":"x","projectHash":"y","startTime":"z"}`, Gemini, nil},
		"gemini, one object":        {"{\n\"sessionId\":\"x\",\n\"projectHash\":\"y\",\"messages\":[]}", Gemini, nil},
		"empty":                     {"", "", ErrEmpty},
		"blank":                     {" \n\n", "", ErrEmpty},
		"NUL":                       {strings.Repeat("\x00", 5000), "", ErrEmpty},
		"binary":                    {"\x7fELF\x02\x01\x01\x00\x00\xff\xfe[[{{\n\x01{", "", ErrFormat},
		"prose":                     {"Dear diary,\n{today}\n", "", ErrFormat},
		"pretty JSON of other kind": {"{\n \"a\": 1\n}", "", ErrFormat},
		"monolithic":                {"{\n \"id\": \"x\",\n \"message_pool\": {}\n}", "a legacy context", ErrFormat},
		"message of a legacy context": {
			"{\n \"id\": \"x\",\n \"message\": {\"role\":\"User\",\"content\":[]},\n \"parent_id\": null\n}",
			"a message of a legacy context", ErrFormat,
		},
		"OpenHands, state": {
			`{"id":"x","agent":{"kind":"Agent"},"workspace":{"kind":"LocalWorkspace"},` +
				`"confirmation_policy":{}}`, "the state of an OpenHands", ErrFormat,
		},
		"OpenHands, metadata": {`{"conversation_id":"x","selected_repository":null}`, "the description of an OpenHands", ErrFormat},
		"Gemini, prompts":     {`[{"sessionId":"x","messageId":0,"type":"user","message":"a"}]`, "the list of prompts", ErrFormat},
		"Claude, index":       {`{"version":1,"entries":[{"sessionId":"x","fullPath":"y"}]}`, "the list of sessions", ErrFormat},
		"chatbot-ui": {`{"version":4,"history":[{"id":"x","messages":[]}],"folders":[],` +
			`"prompts":[]}`, "a chatbot-ui export", ErrFormat},
		"tau-bench": {`[{"task_id":0,"reward":1.0,"info":{},"traj":[{"role":"user"}],` +
			`"trial":0}]`, "a list of tau-bench runs", ErrFormat},
		"array of other kind": {`[{"a":1}]`, "", ErrFormat},
		"array of numbers":    {`[1,2]`, "", ErrFormat},
		"UTF-16":              {"\xff\xfe{\x00\"\x00", "", ErrFormat},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileOf(t, "x", test.content)
			j, err := open(context.Background(), nil, path, Options{}, nil)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, wanted %v", err, test.err)
			}
			if err == nil {
				j.file.Close()
				if j.format != test.want {
					t.Errorf("%q, wanted %q", j.format, test.want)
				}
				return
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), string(test.want)) {
				t.Errorf("%v does not name the file and the format %s", err, test.want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		path string
		o    Options
		want error
	}{
		"missing":        {filepath.Join(dir, "none"), Options{}, fs.ErrNotExist},
		"folder":         {dir, Options{}, fs.ErrInvalid},
		"unknown format": {fileOf(t, "x", "{}"), Options{Format: "word"}, ErrFormat},
		"array of none":  {fileOf(t, "x", "[]"), Options{}, ErrEmpty},
		"no good line":   {fileOf(t, "x", "1\n2"), Options{Format: ClaudeCode}, ErrEmpty},
		"no good object": {fileOf(t, "x", "1\n2"), Options{Format: JSONL}, ErrEmpty},
	} {
		got := importFile(t, newFakeStore(), test.path, test.o)
		if len(got.errs) != 1 || !errors.Is(got.errs[0], test.want) || len(got.results) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if strings.HasPrefix(name, "no good") && len(got.problems) != 2 {
			t.Errorf("%s: problems %v", name, got.problems)
		}
	}
}

func TestFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"b.jsonl", "a/c.JSON", "a/b/d.jsonl", "notes.txt", "store/ctxdir.json", "store/x/y.json"} {
		write(filepath.Join(dir, f))
	}
	write(filepath.Join(outside, "secret.json"))
	for link, to := range map[string]string{"out": outside, "out.json": filepath.Join(outside, "secret.json"), "loop": dir} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skipf("it cannot be made here: %v", err)
		}
	}
	var got []string
	for path, err := range Files(dir) {
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(dir, path)
		got = append(got, filepath.ToSlash(rel))
	}
	if s := strings.Join(got, " "); s != "b.jsonl a/c.JSON a/b/d.jsonl" {
		t.Errorf("files: %s", s)
	}
	for _, err := range Files(filepath.Join(dir, "none")) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing folder: %v", err)
		}
	}
	for path := range Files(filepath.Join(dir, "notes.txt")) {
		if filepath.Base(path) != "notes.txt" {
			t.Errorf("a file by name: %s", path)
		}
	}
}
