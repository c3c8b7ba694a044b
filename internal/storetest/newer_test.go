package storetest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/listing"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
	"github.com/ctxdir/ctxdir/internal/trash"
)

// TestNewerFormat: what a newer program has written in a way that this one does not know is refused, and stays as it
// is, also where it is asked for a repair.
func TestNewerFormat(t *testing.T) {
	ctx := context.Background()
	body := []byte(`{"t":"` + strings.Repeat("a long text ", 100) + `"}`)
	for name, x := range map[string]struct {
		path string
		make func(b []byte) []byte
	}{
		"store": {"ctxdir.json", func(b []byte) []byte { return bytes.Replace(b, []byte("store/1"), []byte("store/2"), 1) }},
		"feature": {"ctxdir.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"incompatible": []`), []byte(`"incompatible": ["x"]`), 1)
		}},
		"context": {"ID/metadata.json", func(b []byte) []byte { return bytes.Replace(b, []byte("context/1"), []byte("context/9"), 1) }},
		"log":     {"ID/log-*.jsonl", func(b []byte) []byte { return newerRecord(b, `"ctxdir":"log/`) }},
		"record":  {"ID/log-*.jsonl", func(b []byte) []byte { return newerRecord(b, `"ctxdir":"message/`) }},
		"segment": {"ID/segments/*.zst", newerSegment},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := kit.NewStore(t, engine.WithTextThreshold(100), engine.WithoutPause())
			c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
			for i := range 6 {
				kit.Append(t, c.Active(), engine.Draft{Body: body})
				if i == 3 {
					kit.Check(t, c.Seal(ctx))
				}
			}
			kit.Check(t, errors.Join(c.Close(), s.Close()))
			path := kit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, strings.Replace(x.path, "ID", c.ID().String(), 1))))[0]
			was := kit.Must[[]byte](t)(os.ReadFile(path))
			newer := x.make(bytes.Clone(was))
			if bytes.Equal(was, newer) {
				t.Fatal("nothing is newer")
			}
			kit.Check(t, os.WriteFile(path, newer, 0o600))
			err := tryAll(t, dir, c)
			if !errors.Is(err, engine.ErrFormat) || !strings.Contains(err.Error(), "unsupported") {
				t.Errorf("%v", err)
			}
			if now := kit.Must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(now, newer) {
				t.Error("the file was changed")
			}
		})
	}
}

// tryAll does what may change a context, and returns what opening it gives.
func tryAll(t *testing.T, dir string, c *engine.Context) error {
	t.Helper()
	ctx := context.Background()
	s, err := kit.Open(dir, engine.WithTextThreshold(100), engine.WithoutPause())
	if err != nil {
		return err
	}
	defer s.Close()
	for sum, err := range listing.New(s).List(ctx, listing.ListOptions{}) {
		if err != nil {
			t.Errorf("list: %v", err)
		}
		t.Logf("listed: %v", sum.Problem)
	}
	found := 0
	for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
		if found++; err != nil || f.Severity != integrity.SeverityError || !strings.Contains(f.Detail, "unsupported") {
			t.Errorf("check: %+v, %v", f, err)
		}
	}
	if found == 0 {
		t.Error("a check finds nothing")
	}
	for r, err := range checking.Repair(ctx, s, nil, checking.Options{Adopt: true}) {
		if !errors.Is(err, engine.ErrFormat) {
			t.Errorf("repair: %+v, %v", r, err)
		}
	}
	for x, err := range trash.Collect(ctx, s, trash.CollectOptions{}) {
		t.Logf("collect: %+v, %v", x, err)
	}
	again, err := s.Context(ctx, c.ID())
	if err != nil {
		return err
	}
	for m, merr := range again.Active().Messages(ctx) {
		if merr == nil {
			merr = m.Unavailable
		}
		err = errors.Join(err, merr)
	}
	_, aerr := again.Active().Append(ctx, engine.Draft{Body: []byte(`{}`)})
	return errors.Join(err, aerr, again.Seal(ctx), again.Close())
}

// newerSegment is a segment of the next version.
func newerSegment(b []byte) []byte {
	const footer, sum = 136, 8
	body, end := b[len(b)-footer:len(b)-sum], b[len(b)-sum:]
	body[len(body)-1]++ // it ends with the kind
	binary.LittleEndian.PutUint64(end, xxhash.Sum64(body))
	return b
}

// newerRecord gives the first record of a log that names a kind of format the next version of it, and the sums that
// belong to it.
func newerRecord(b []byte, kind string) []byte {
	at := bytes.Index(b, []byte(kind))
	b[at+len(kind)]++
	start := bytes.LastIndexByte(b[:at], '\n') + 1
	end := start + bytes.IndexByte(b[start:], '\n')
	record := b[start:end]
	body := bytes.Index(record, []byte(`"body":`)) + len(`"body":`)
	sum := bytes.Index(record, []byte(`"sum":"`)) + len(`"sum":"`)
	copy(record[sum:], fmt.Sprintf("%016x", xxhash.Sum64(record[body:len(record)-1])))
	chained := bytes.Index(record, []byte(`","prev"`))
	copy(record[len(`{"chain":"`):], fmt.Sprintf("%016x", xxhash.Sum64(record[chained:body])))
	if !json.Valid(record) {
		panic("no record")
	}
	return b
}

// TestNewerMessageFile: the file of a message that a newer program has written is not taken for damaged, nor is one
// that nobody refers to moved away.
func TestNewerMessageFile(t *testing.T) {
	ctx := context.Background()
	s, dir := kit.NewStore(t, engine.WithoutPause())
	c := kit.Must[*engine.Context](t)(s.Create(ctx, engine.Metadata{}))
	at := kit.Append(t, c.Active(), engine.Draft{Body: []byte(`{"n":1}`)})
	kit.Check(t, c.Close())
	folder := filepath.Join(dir, c.ID().String(), "messages", "branch-main")
	own, foreign := filepath.Join(folder, at.ID.String()+".json"), filepath.Join(folder, kit.TestID(7).String()+".json")
	newer := bytes.Replace(kit.Must[[]byte](t)(os.ReadFile(own)), []byte("message/1"), []byte("message/2"), 1)
	for _, path := range []string{own, foreign} {
		kit.Check(t, os.WriteFile(path, newer, 0o600))
	}
	for range 2 {
		kinds := map[string]int{}
		for f, err := range checking.Check(ctx, s, nil, checking.Options{ReadData: true}) {
			if err != nil || f.Repairable || !strings.Contains(f.Detail, "unsupported") {
				t.Errorf("%+v, %v", f, err)
			}
			kinds[string(f.Kind)]++
		}
		if len(kinds) != 2 || kinds["message-unreadable"] != 1 || kinds["unknown-file"] != 1 {
			t.Errorf("found %v", kinds)
		}
		for r, err := range checking.Repair(ctx, s, nil, checking.Options{Adopt: true}) {
			t.Errorf("repaired: %+v, %v", r, err)
		}
	}
	for _, path := range []string{own, foreign} {
		if b := kit.Must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(b, newer) {
			t.Errorf("%s was changed", filepath.Base(path))
		}
	}
}
