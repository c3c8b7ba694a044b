package importer

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

type object = map[string]any

// recordsOf reads the records of a history by other means than the package, and counts the problems.
func recordsOf(t *testing.T, s sample) (records []any, problems int64) {
	t.Helper()
	if s.format == OpenHands {
		if st, err := os.Stat(s.path); err == nil && st.IsDir() {
			return filesOf(t, s.path), 0
		}
	}
	b, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(s.path, ".zst") {
		d, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err = d.DecodeAll(b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if line, rest, _ := bytes.Cut(b, []byte("\n")); bytes.HasPrefix(line, []byte("Exporting session: ")) {
		b = rest
	}
	values, problems := valuesOf(b)
	for _, v := range values {
		records = append(records, split(t, s, v)...)
	}
	if s.format == Gemini {
		records = lastStates(records)
	}
	return records, problems
}

// valuesOf reads consecutive JSON objects. In lines, anything else is one problem a line.
func valuesOf(b []byte) (values []any, problems int64) {
	if v, err := decode(b); err == nil {
		if list, ok := v.([]any); ok {
			return list, 0
		}
		return []any{v}, 0
	}
	for _, line := range bytes.Split(b, []byte("\n")) {
		bad := int64(0)
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		for d.More() {
			var v any
			if d.Decode(&v) != nil {
				bad = 1
				break
			}
			if _, ok := v.(object); ok {
				values = append(values, v)
			} else {
				bad = 1
			}
		}
		problems += bad
	}
	return values, problems
}

func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, []byte(bom))))
	d.UseNumber()
	if err = d.Decode(&v); err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	return v, err
}

// split returns the records in a value of a file.
func split(t *testing.T, s sample, v any) (records []any) {
	o := v.(object)
	list := func(key string) []any {
		l, _ := o[key].([]any)
		return l
	}
	switch s.format {
	case ChatGPT:
		return slices.Collect(maps.Values(o["mapping"].(object)))
	case OpenCode:
		if o["messages"] == nil {
			return storageOf(t, s.path, o)
		}
		return list("messages")
	case Gemini:
		if o["messages"] != nil {
			return list("messages")
		}
	case MiniSWEAgent:
		return list("messages")
	case OpenAI:
		if o["messages"] != nil {
			return list("messages")
		}
	case SWEAgent:
		return append(list("history"), list("trajectory")...)
	case OpenAssistant:
		if prompt, ok := o["prompt"].(object); ok {
			o = prompt
		}
		return nested(o, "replies")
	case LibreChat:
		for _, m := range list("messages") {
			records = append(records, nested(m.(object), "children")...)
		}
		return records
	}
	return []any{v}
}

func nested(o object, key string) []any {
	one := maps.Clone(o)
	delete(one, key)
	out := []any{one}
	replies, _ := o[key].([]any)
	for _, r := range replies {
		out = append(out, nested(r.(object), key)...)
	}
	return out
}

// lastStates returns the records of a Gemini log, each message in its last state.
func lastStates(records []any) (out []any) {
	at := map[any]int{}
	for _, r := range records {
		o := r.(object)
		if i, again := at[o["id"]]; again && o["id"] != nil {
			out[i] = r
			continue
		}
		at[o["id"]] = len(out)
		out = append(out, r)
	}
	return out
}

// storageOf returns the messages of an opencode session in a storage folder.
func storageOf(t *testing.T, path string, session object) (records []any) {
	storage := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	for _, m := range filesOf(t, filepath.Join(storage, "message", session["id"].(string))) {
		parts := filesOf(t, filepath.Join(storage, "part", m.(object)["id"].(string)))
		if parts == nil {
			parts = []any{}
		}
		records = append(records, object{"info": m, "parts": parts})
	}
	return records
}

func filesOf(t *testing.T, dir string) (out []any) {
	t.Helper()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		v, err := decode(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}
