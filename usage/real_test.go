package usage_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/histories"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/google/uuid"
)

// counts are what a history records, counted without this package.
type counts struct {
	steps, input, read, written, output, reasoning int64
	cost                                           float64
}

func (c *counts) add(o counts) {
	c.steps += o.steps
	c.input, c.read, c.written = c.input+o.input, c.read+o.read, c.written+o.written
	c.output, c.reasoning, c.cost = c.output+o.output, c.reasoning+o.reasoning, c.cost+o.cost
}

func (c counts) is(o counts) bool {
	near := math.Abs(c.cost-o.cost) <= 1e-9*math.Max(c.cost, o.cost)
	c.cost, o.cost = 0, 0
	return c == o && near
}

// object is a JSON value as a script would see it.
type object map[string]any

func (o object) in(names ...string) object {
	for _, name := range names {
		next, _ := o[name].(map[string]any)
		o = next
	}
	return o
}

func (o object) n(name string) int64 { f, _ := o[name].(float64); return int64(f) }
func (o object) s(name string) string {
	s, _ := o[name].(string)
	return s
}

// values are the JSON values of a file: the lines, or the whole.
func values(t *testing.T, path string) (all []object) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if json.Unmarshal(b, &whole) == nil {
		switch v := whole.(type) {
		case map[string]any:
			return []object{v}
		case []any:
			return nil
		}
	}
	for line := range bytes.Lines(b) {
		d := json.NewDecoder(bytes.NewReader(line)) // two objects share a line in one file
		for {
			var v any
			if d.Decode(&v) != nil {
				break
			}
			if o, ok := v.(map[string]any); ok {
				all = append(all, o)
			}
		}
	}
	return all
}

// calls counts the calls in a file by a key that is the same in copies of a record.
func calls(t *testing.T, path string) map[string]counts {
	all := map[string]counts{}
	last := ""
	for _, o := range values(t, path) {
		claude := []object{o.in("message"), o.in("data", "message", "message")}
		switch {
		case o.in("payload").s("type") == "token_count":
			total, _ := json.Marshal(o.in("payload", "info", "total_token_usage"))
			if string(total) != last {
				u := o.in("payload", "info", "last_token_usage")
				all[string(total)] = counts{
					1, u.n("input_tokens"), u.n("cached_input_tokens"), 0, u.n("output_tokens"), u.n("reasoning_output_tokens"), 0,
				}
			}
			last = string(total)
		case o["trajectory"] != nil: // SWE-agent records only sums
			u := o.in("info", "model_stats")
			cost, _ := u["instance_cost"].(float64)
			if c := (counts{1, u.n("tokens_sent"), 0, 0, u.n("tokens_received"), 0, cost}); c.input > 0 {
				all[path] = c
			}
		case o["messages"] != nil:
			list, _ := o["messages"].([]any)
			for _, m := range list {
				m := object(m.(map[string]any))
				if u := m.in("tokens"); u != nil { // Gemini CLI
					all[m.s("id")] = counts{1, u.n("input"), u.n("cached"), 0, u.n("output"), u.n("thoughts"), 0}
				}
				parts, _ := m["parts"].([]any)
				for i, p := range parts { // ids are redacted in some files
					p := object(p.(map[string]any))
					if u := p.in("tokens"); p.s("type") == "step-finish" {
						cost, _ := p["cost"].(float64)
						all[fmt.Sprint(m.in("info", "time").n("created"), " ", i)] = counts{
							1, u.n("input"), u.in("cache").n("read"), u.in("cache").n("write"), u.n("output"), u.n("reasoning"), cost,
						}
					}
				}
			}
		case o.in("message", "usage")["cacheRead"] != nil: // pi
			u := o.in("message", "usage")
			cost, _ := u.in("cost")["total"].(float64)
			all[o.s("timestamp")] = counts{1, u.n("input"), u.n("cacheRead"), u.n("cacheWrite"), u.n("output"), 0, cost}
		default:
			for _, m := range claude {
				if u := m.in("usage"); u != nil && m.s("model") != "<synthetic>" {
					c := counts{
						1, u.n("input_tokens"), u.n("cache_read_input_tokens"), u.n("cache_creation_input_tokens"), u.n("output_tokens"), 0, 0,
					}
					id := m.s("id")
					if len(id) < 16 { // made up for a test
						id += path
					}
					if c.output >= all[id].output { // the reply is written while the lines are
						all[id] = c
					}
				}
			}
		}
	}
	return all
}

func sumOf(calls map[string]counts) (sum counts) {
	for _, c := range calls {
		sum.add(c)
	}
	return sum
}

// imported imports a file, and returns its contexts.
func imported(t *testing.T, s *ctxdir.Store, path string) (ids []uuid.UUID) {
	for r, err := range importer.Import(t.Context(), histories.Into(s), path, importer.Options{}) {
		if r.Context != uuid.Nil {
			ids = append(ids, r.Context)
		}
		if err != nil && r.Context == uuid.Nil && !errors.Is(err, importer.ErrFormat) {
			t.Logf("%s: %v", path, err)
		}
	}
	return ids
}

func recorded(t *testing.T, s *ctxdir.Store, ids []uuid.UUID) (sum counts) {
	for step := range steps(t, s, ids...) {
		if !step.Estimated {
			sum.add(counts{1, step.Input, step.CacheRead, step.CacheWrite, step.Output, step.Reasoning, step.Cost})
		}
	}
	return sum
}

// TestRealHistories compares every file of real histories, and all of them together, with what a script counts in the
// files themselves.
func TestRealHistories(t *testing.T) {
	root := os.Getenv("CTXDIR_TEST_DATA")
	if root == "" {
		t.Skip("CTXDIR_TEST_DATA names no folder of real histories")
	}
	together := newStore(t)
	union := map[string]counts{}
	var ids []uuid.UUID
	files, withSteps := 0, 0
	for _, folder := range []string{
		"claude-code", "multimodal", "codex", "opencode", "other-gemini-cli", "other-pi", "trajectory", "chatgpt",
	} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			s := newStore(t)
			want := calls(t, path)
			got := recorded(t, s, imported(t, s, path))
			if sum := sumOf(want); !got.is(sum) {
				t.Errorf("%s: got %+v, want %+v", filepath.Base(path), got, sum)
			}
			files++
			if len(want) > 0 {
				withSteps++
			}
			for key, c := range want {
				if c.output >= union[key].output {
					union[key] = c
				}
			}
			ids = append(ids, imported(t, together, path)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if withSteps < 30 {
		t.Fatalf("only %d of %d files record steps", withSteps, files)
	}
	if got, want := recorded(t, together, ids), sumOf(union); !got.is(want) {
		t.Errorf("together: got %+v, want %+v", got, want)
	} else {
		t.Logf("%d files, %d with steps, together %+v", files, withSteps, got)
	}
}
