package importer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// void is a store that keeps nothing and looks at how much is held while it is written to.
type void struct{ appends, most uint64 }

func (v *void) Open(context.Context, Info) (Conversation, error)                 { return v, nil }
func (v *void) Branches(context.Context) ([]Branch, error)                       { return nil, nil }
func (v *void) Messages(context.Context, string, int64, int64) ([]Record, error) { return nil, nil }
func (v *void) SetActive(context.Context, string) error                          { return nil }
func (v *void) Close() error                                                     { return nil }
func (v *void) Replace(context.Context, string, []Record) error                  { return nil }
func (v *void) Describe(context.Context, Info, bool) error                       { return nil }
func (v *void) Times() (a, b time.Time)                                          { return a, b }
func (v *void) Find(context.Context, uuid.UUID) (string, int64, bool, error) {
	return "", 0, false, nil
}
func (v *void) Fork(context.Context, string, string, int64, map[string]json.RawMessage) error {
	return nil
}

func (v *void) Append(context.Context, string, int64, []Record) error {
	if v.appends++; v.appends%8 == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		v.most = max(v.most, m.HeapAlloc)
	}
	return nil
}

// What is held does not grow with the content of a file.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it writes a large file")
	}
	const size = 96 << 20
	for name, test := range map[string]struct{ open, between, close string }{
		"lines": {"", "\n", "\n"},
		"array": {"[", ",\n", "]"},
	} {
		path := filepath.Join(t.TempDir(), "large.json")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		pad := strings.Repeat("many words ", 1000)
		fmt.Fprint(w, test.open)
		for i := range size / len(pad) {
			if i > 0 {
				fmt.Fprint(w, test.between)
			}
			fmt.Fprintf(w, `{"role":"user","content":"%d %s"}`, i, pad)
		}
		fmt.Fprint(w, test.close)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		f.Close()
		v := &void{}
		for _, err := range Import(t.Context(), v, path, Options{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if v.appends < 8 || v.most > 32<<20 {
			t.Errorf("%s: %d batches, %d MiB held of a file of %d", name, v.appends, v.most>>20, size>>20)
		}
		t.Logf("%s: %d batches, %d MiB", name, v.appends, v.most>>20)
		os.Remove(path)
	}
}
