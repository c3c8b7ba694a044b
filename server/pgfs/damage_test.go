package pgfs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/knobs"
	"github.com/ctxdir/ctxdir/server/internal/pgtest"
	"github.com/google/uuid"
)

const phrase = "the heron at the weir"

// fill makes a store with one context of some messages.
func fill(t *testing.T, f *FS, id uuid.UUID, messages int, o engine.Option) {
	t.Helper()
	s, err := ctxdir.Init("database", knobs.Options(engine.WithFS(f), o))
	check(t, err)
	c, err := s.Create(context.Background(), ctxdir.Metadata{ID: id, Title: phrase})
	check(t, err)
	for n := range messages {
		body := fmt.Sprintf(`{"role":"user","content":%q}`, fmt.Sprint(phrase, n, strings.Repeat(" or so", 200)))
		_, err := c.Active().Append(context.Background(), ctxdir.Draft{Body: json.RawMessage(body)})
		check(t, err)
	}
	check(t, c.Close())
	check(t, s.Close())
	check(t, f.Close())
}

// TestMovedRow moves rows with SQL: each is damage that a check finds and a repair mends, and no message shows the content of
// another.
func TestMovedRow(t *testing.T) {
	const large = ` FROM extents WHERE user_id = $1 AND octet_length(data) BETWEEN 1000 AND 3000`
	for what, statement := range map[string]string{
		"number": `UPDATE extents SET n = n + 100 WHERE (user_id, node, n) IN (SELECT user_id, node, min(n) + 5` + large + ` GROUP BY 1, 2)`,
		"offset": `UPDATE extents SET off = off + 10 WHERE (user_id, node, n) IN (SELECT user_id, node, min(n) + 5` + large + ` GROUP BY 1, 2)`,
		"node":   `UPDATE extents SET node = node - 1 WHERE (user_id, node, n) IN (SELECT user_id, node, max(n) - 4` + large + ` GROUP BY 1, 2)`,
		"exchange": `UPDATE extents a SET data = b.data FROM extents b WHERE a.user_id = $1 AND b.user_id = a.user_id AND b.node = a.node
			AND a.n = b.n + 1 AND (a.node, a.n) IN (SELECT node, min(n) + 6` + large + ` GROUP BY 1)`,
		"name": `UPDATE entries SET parent = 1 WHERE user_id = $1
			AND node = (SELECT node` + large + ` GROUP BY 1 ORDER BY count(*) DESC LIMIT 1)`,
	} {
		t.Run(what, func(t *testing.T) {
			d, id := newDisk(t), uuid.New()
			fill(t, d.open(), id, 20, engine.WithSealBytes(-1))
			if n := d.exec(statement, d.user); n != 1 {
				t.Fatalf("%d rows were moved", n)
			}
			f := d.open()
			s, err := ctxdir.Open("database", knobs.Options(engine.WithFS(f), engine.WithSealBytes(-1)))
			check(t, err)
			found := 0
			for x, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
				check(t, err)
				if x.Severity == ctxdir.SeverityError {
					found++
				}
				t.Logf("%+v", x)
			}
			t.Log(d.damages)
			if found == 0 {
				t.Error("a check finds nothing")
			}
			_, err = s.Repair(t.Context(), ctxdir.RepairOptions{All: true})
			check(t, err)
			for x, err := range s.Check(t.Context(), ctxdir.CheckOptions{All: true, ReadData: true}) {
				check(t, err)
				if x.Repairable {
					t.Errorf("after the repair: %+v", x)
				}
			}
			intact := 0
			err = s.Use(t.Context(), id, func(c *ctxdir.Context) error {
				for m, err := range c.Active().Messages(t.Context(), 0, 100) {
					if err != nil {
						return err
					}
					if m.Unavailable != nil {
						continue
					}
					body, err := m.Body(t.Context())
					if err != nil || !bytes.Contains(body, fmt.Append(nil, phrase, m.Position, " or so")) {
						t.Errorf("position %d has %.100s, %v", m.Position, body, err)
					}
					intact++
				}
				return nil
			})
			t.Logf("%d of 20 messages are intact, %v", intact, err)
			if what != "name" && intact < 19 {
				t.Errorf("only %d messages of 20 are intact", intact)
			}
			check(t, s.Close())
			check(t, f.Close())
		})
	}
}

// TestPhrase looks for texts and names in all files of the database, its log included.
func TestPhrase(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		d := newDisk(t)
		if !sealed {
			d.keys = nil
		}
		fill(t, d.open(), uuid.New(), 100, engine.WithSealBytes(30_000))
		d.exec("CHECKPOINT")
		found := false
		for _, what := range []string{phrase, "ctxdir.json", "metadata.json"} {
			found = found || contains(t, server, what)
		}
		if found == sealed { // the second round shows that the search would find it
			t.Errorf("sealed %v: found %v", sealed, found)
		}
	}
}

func contains(t *testing.T, s *pgtest.Server, what string) (found bool) {
	check(t, filepath.WalkDir(s.Data(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // a running server removes files
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(what)) {
			t.Logf("%q is in %s", what, filepath.Base(path))
			found = true
		}
		return nil
	}))
	return found
}
