package storetest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/legacy"
	"github.com/ctxdir/ctxdir/internal/legacytest"
	"github.com/ctxdir/ctxdir/internal/migrate"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	kit "github.com/ctxdir/ctxdir/internal/storetest"
)

// begin makes the context that the run is about: a new one, or one that was a legacy context.
func (d *driver) begin() {
	main := &modelLine{}
	d.m = model{branches: map[string]*modelLine{engine.MainBranch: main}, lines: []*modelLine{main}, active: engine.MainBranch}
	var err error
	if rapid.Bool().Draw(d.t, "migrated") {
		d.migrate()
	} else {
		d.c, err = d.store.Create(d.ctx(), engine.Metadata{})
		d.check(err)
	}
	d.other, err = d.store.Context(d.ctx(), d.c.ID())
	d.check(err)
}

// migrate makes a legacy context of branches whose lists are equal up to somewhere, and migrates it.
func (d *driver) migrate() {
	n := rapid.IntRange(1, 20).Draw(d.t, "pool")
	bodies, pool := map[int]string{}, []string{}
	for i := range n {
		bodies[i] = d.body()
		pool = append(pool, fmt.Sprintf(`%q:{"id":%q,"message":%s,"parent_id":null}`, legacytest.ID(i), legacytest.ID(i), bodies[i]))
	}
	var branches []string
	for i, name := range []string{engine.MainBranch, "a", "Main"}[:rapid.IntRange(1, 3).Draw(d.t, "branches")] {
		l := d.m.branches[engine.MainBranch]
		if i > 0 { // it begins as another does, and may go on as that one does
			of := d.m.branches[rapid.SampledFrom(d.m.names()).Draw(d.t, "like")]
			l = &modelLine{own: of.view()}
			l.own = l.own[:rapid.IntRange(0, len(l.own)).Draw(d.t, "as far as")]
		}
		for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID[int]).Draw(d.t, "list") {
			id := uuid.MustParse(legacytest.ID(k))
			if !inView(l.own, id) {
				l.own = append(l.own, &modelMessage{id, bodies[k]})
			}
		}
		var list []string
		for _, m := range l.own {
			list = append(list, fmt.Sprintf("%q", m.id))
		}
		branches = append(branches, fmt.Sprintf(`%q:{"name":%q,"message_ids":[%s],"system_prompt":null,"user_prompt":null}`,
			name, name, strings.Join(list, ",")))
		if i > 0 {
			d.share(name, l)
		}
	}
	d.rest(n, bodies)
	id := uuid.New()
	path := filepath.Join(d.dir, id.String()+".json")
	text := fmt.Sprintf(`{"id":%q,"parent_id":null,"config":{},"message_pool":{%s},"branches":{%s},`+
		`"active_branch_name":"main","current_state":"idle"}`, id, strings.Join(pool, ","), strings.Join(branches, ","))
	d.check(os.WriteFile(path, []byte(text), 0o600))
	var err error
	d.c, err = d.store.Context(d.ctx(), id)
	d.check(err)
}

func inView(view []*modelMessage, id uuid.UUID) bool {
	for _, m := range view {
		if m.id == id {
			return true
		}
	}
	return false
}

// share makes a line of what a list has in common with another one, and of the rest. Names that differ in case only are
// told apart by a number.
func (d *driver) share(name string, l *modelLine) {
	var of *modelLine
	base := 0
	for _, other := range d.m.lines {
		view, n := other.view(), 0
		for n < min(len(view), len(l.own)) && view[n].id == l.own[n].id {
			n++
		}
		if n > base {
			of, base = other, n
		}
	}
	added := d.m.begin(of, base)
	added.own = l.own[base:]
	if name == "Main" {
		name = "Main-2"
	}
	d.m.branches[name] = added
}

// rest puts what no list names on a branch.
func (d *driver) rest(n int, bodies map[int]string) {
	rest := &modelLine{}
	for i := range n {
		id, listed := uuid.MustParse(legacytest.ID(i)), false
		for _, l := range d.m.lines {
			listed = listed || inView(l.own, id)
		}
		if !listed {
			rest.own = append(rest.own, &modelMessage{id, bodies[i]})
		}
	}
	if len(rest.own) > 0 {
		d.m.branches[migrate.Unlisted], d.m.lines = rest, append(d.m.lines, rest)
	}
}

// rollback gives the context back as a legacy one, and looks for what its branches show.
func (d *driver) rollback() {
	path := filepath.Join(d.dir, "rolled-back.json")
	_, err := migrate.Rollback(d.ctx(), d.handle(), path, migrate.RollbackOptions{})
	d.check(err)
	raw, err := os.ReadFile(path)
	d.check(err)
	d.check(os.Remove(path))
	var back struct {
		Pool map[string]struct {
			Message json.RawMessage `json:"message"`
		} `json:"message_pool"`
		Branches map[string]struct {
			List []string `json:"message_ids"`
		} `json:"branches"`
		Active string `json:"active_branch_name"`
	}
	d.check(json.Unmarshal(raw, &back))
	if _, there := back.Branches[back.Active]; !there {
		d.t.Fatalf("the active branch %q is missing", back.Active)
	}
	for _, b := range d.c.Metadata().Branches {
		of := migrate.ParseBranchOrigin(&b)
		view := d.m.branches[b.Name].view()
		name, _ := legacy.Text(of.Key(d.c.Metadata(), &b))
		got, there := back.Branches[name]
		if !there && of.Unlisted >= int64(len(view)) {
			continue
		}
		if !there || len(got.List) != len(view) {
			d.t.Fatalf("branch %q came back as %q with %d messages, wanted %d", b.Name, name, len(got.List), len(view))
		}
		delete(back.Branches, name)
		for i, m := range view {
			if node := back.Pool[got.List[i]].Message; !sameMessage(d.t, node, m.body) {
				d.t.Fatalf("branch %q, position %d: %.300s, wanted %.300s", b.Name, i, node, m.body)
			}
		}
	}
	if len(back.Branches) > 0 {
		d.t.Fatalf("branches came back that are not there: %v", back.Branches)
	}
}

// sameMessage looks for a message in that of a node: it is that, or in "original".
func sameMessage(t *rapid.T, node json.RawMessage, body string) bool {
	var of struct {
		Original json.RawMessage `json:"original"`
	}
	if len(node) == 0 || json.Unmarshal(node, &of) != nil {
		return false
	}
	return kit.SameJSON(t, node, []byte(body)) || of.Original != nil && kit.SameJSON(t, of.Original, []byte(body))
}
