package integrity_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// only fails unless findings are all of a kind, and as many.
func (p *patient) only(found []integrity.Finding, kind integrity.Kind, severity integrity.Severity, n int) {
	p.Helper()
	for _, f := range found {
		if f.Kind != kind || f.Severity != severity {
			p.Errorf("%+v", f)
		}
	}
	if len(found) != n {
		p.Errorf("%d findings, wanted %d: %+v", len(found), n, found)
	}
}

// TestSound: nothing is wrong with a context that is in order, whatever was done with it.
func TestSound(t *testing.T) {
	t.Parallel()
	for _, of := range states {
		p := newPatient(t, of)
		if !of.views {
			p.archive()
		}
		p.only(p.check(), "", "", 0)
		if done, left := p.repair(checking.Options{}); len(done) > 0 || left > 0 {
			t.Errorf("%s: %+v", of, done)
		}
	}
}

// TestEdits: a repair commits what a person changed in the files of messages. The version before is in the trash.
func TestEdits(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{true, false} {
		p := newPatient(t, state{true, log})
		for _, n := range []int{1, 13, 21} {
			p.change(p.view(n), false, func(b []byte) []byte { return []byte(strings.Replace(string(b), "short", "edited", 1)) })
			p.want["main"][n] = strings.Replace(p.want["main"][n], "short", "edited", 1)
		}
		p.want["alt"][1] = p.want["main"][1]
		p.only(p.check(), integrity.KindEdited, info, 3)
		p.heal(integrity.KindEdited, info, 0, checking.Options{})
		check(t, os.RemoveAll(p.path("messages")))
		if n := p.lost(); n > 0 {
			t.Errorf("%d edits are lost with the files", n)
		}
		versions, err := filepath.Glob(p.path("trash", "*.json"))
		check(t, err)
		if len(versions) != 3 {
			t.Errorf("%d versions are in the trash", len(versions))
		}
	}
}

// TestUnmade: that a file was not made yet is no more than worth knowing, and the same for an archived message nothing.
func TestUnmade(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, true})
	check(t, os.Remove(p.view(22)))
	p.only(p.check(), integrity.KindMissing, info, 1)
	p.heal(integrity.KindMissing, info, 0, checking.Options{})
}

// TestPayloads: payloads come back from a log, or from the trash of the store.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{true, false} {
		p := newPatient(t, state{true, log})
		blobs, err := filepath.Glob(filepath.Join(p.root, "blobs", "*", "*", "*.zst"))
		check(t, err)
		for _, blob := range blobs {
			b, err := os.ReadFile(blob)
			check(t, err, os.WriteFile(blob, b[:len(b)-3], 0o600))
		}
		found := p.check()
		sealed, kept := 0, 0
		for _, f := range found {
			switch {
			case f.Kind != integrity.KindBlob:
				t.Errorf("%+v", f)
			case f.Repairable:
				kept++
			default:
				sealed++
			}
		}
		if sealed == 0 || (kept > 0) != log {
			t.Errorf("log %v: %d damaged blobs have a copy, %d have none", log, kept, sealed)
		}
		item := filepath.Join(p.root, "trash", uuid.NewString())
		for _, blob := range blobs {
			b, err := os.ReadFile(blob)
			check(t, err, os.Remove(blob), os.MkdirAll(item, 0o700))
			_ = b
		}
		done, left := p.repair(checking.Options{})
		if left == 0 || len(done) > 0 && !log {
			t.Errorf("log %v: %d left, %+v", log, left, done)
		}
	}
}

// TestPayloadFromTrash: a blob that is only in the trash of the store comes back.
func TestPayloadFromTrash(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, false})
	blobs, err := filepath.Glob(filepath.Join(p.root, "blobs", "*", "*", "*.zst"))
	check(t, err)
	item := filepath.Join(p.root, "trash", uuid.NewString())
	check(t, os.MkdirAll(item, 0o700), os.Rename(blobs[0], filepath.Join(item, filepath.Base(blobs[0]))))
	p.heal(integrity.KindPayload, bad, 0, checking.Options{})
}

// TestAdopt: a valid message that was never committed is adopted on request: at the end of its line, or on a branch of its
// own.
func TestAdopt(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, true})
	raw, err := os.ReadFile(p.view(23))
	check(t, err)
	more := func(position, prev string) {
		id := uuid.NewString()
		s := strings.NewReplacer(p.ids["main"][23].String(), id, `"position":23`, `"position":`+position,
			`"prev":"`+p.ids["main"][22].String(), `"prev":"`+prev, "short 23", "more "+position).Replace(string(raw))
		check(t, os.WriteFile(p.path("messages", "branch-main", id+".json"), []byte(s), 0o600))
	}
	more("24", p.ids["main"][23].String())
	more("10", p.ids["main"][9].String())
	p.only(p.check(), integrity.KindForeign, warn, 2)
	if done, left := p.repair(checking.Options{}); len(done) > 0 || left != 2 {
		t.Errorf("%d left, %+v", left, done)
	}
	p.want["main"] = append(p.want["main"], `{"role":"user","content":"more 24"}`)
	p.want["main (found)"] = append(slices.Clone(p.want["main"][:10]), `{"role":"user","content":"more 10"}`)
	done, left := p.repair(checking.Options{Adopt: true})
	if len(done) != 2 || left > 0 || p.lost() > 0 {
		t.Errorf("%d left, %+v", left, done)
	}
	p.only(p.check(), "", "", 0)
}

// TestOnlyViews: with files of messages and metadata.json alone, a repair has everything again.
func TestOnlyViews(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{true, false} {
		p := newPatient(t, state{true, log})
		for _, path := range p.files("log-*.jsonl") {
			check(t, os.Remove(path))
		}
		check(t, os.RemoveAll(p.path("segments")))
		p.heal(integrity.KindLog, bad, 0, checking.Options{})
	}
}

// TestNoMetadata: without any metadata nothing can be repaired, and a check says so.
func TestNoMetadata(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, false})
	for _, path := range p.files("log-*.jsonl") {
		check(t, os.Remove(path))
	}
	check(t, os.RemoveAll(p.path("segments")), os.Remove(p.path("metadata.json")))
	check(t, os.WriteFile(p.path("metadata.json"), []byte("{"), 0o600))
	found := p.check()
	if !slices.ContainsFunc(found, func(f integrity.Finding) bool { return f.Kind == integrity.KindMetadata && f.Severity == bad }) {
		t.Errorf("%+v", found)
	}
	if _, left := p.repair(checking.Options{}); left == 0 {
		t.Error("nothing is left to repair")
	}
}

// TestOlderVersion: an earlier version of a message counts if no other one is left.
func TestOlderVersion(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, false})
	was, err := os.ReadFile(p.view(6))
	check(t, err)
	p.do(func(c *engine.Context) error {
		draft := engine.Draft{Body: []byte(`{"role":"user","content":"short 0000"}`)}
		if err := c.Active().Replace(context.Background(), p.ids["main"][6], draft, engine.Shared()); err != nil {
			return err
		}
		return c.Seal(context.Background())
	})
	check(t, os.WriteFile(p.view(6), was, 0o600))
	p.only(p.check(), integrity.KindDamaged, warn, 1)
	garble(p, p.segment(len(p.files("segments/*.zst"))-1), 6)
	p.heal(integrity.KindLost, bad, 0, checking.Options{})
}

// TestLineWithoutMetadata: a line that the metadata lacks gets a branch.
func TestLineWithoutMetadata(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, false})
	p.do(func(c *engine.Context) error {
		return c.Exclusively(context.Background(), func() error {
			m := c.Metadata()
			m.Lines, m.Branches = m.Lines[:1], m.Branches[:1]
			return c.ReplaceMetadata(m)
		})
	})
	p.heal(integrity.KindStructure, bad, 0, checking.Options{})
}

// TestLostPositions: of lost messages in a row a check tells once.
func TestLostPositions(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{false, true})
	p.archive()
	check(t, os.Remove(p.segment(0)))
	lost := 0
	for _, f := range p.check() {
		switch {
		case f.Kind == integrity.KindLost:
			lost++
		case !strings.HasSuffix(f.Detail, "19 messages of the context are lost"):
			t.Errorf("%+v", f)
		}
	}
	if lost != 2 {
		t.Errorf("%d findings of lost messages", lost)
	}
}

// TestDamagedStays: a damaged file is in the trash after a repair, as it was.
func TestDamagedStays(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, true})
	garble(p, p.segment(0), 3)
	garble(p, p.newestLog(), 18)
	check(t, os.WriteFile(p.view(5), []byte("damaged"), 0o600))
	var want []string
	for _, path := range []string{p.segment(0), p.newestLog(), p.view(5)} {
		b, err := os.ReadFile(path)
		check(t, err)
		want = append(want, filepath.Base(path)+string(b))
	}
	p.repair(checking.Options{})
	for _, path := range p.files("trash/*/*") {
		b, err := os.ReadFile(path)
		check(t, err)
		want = slices.DeleteFunc(want, func(s string) bool { return s == filepath.Base(path)+string(b) })
	}
	if len(want) > 0 {
		t.Errorf("%d files are not in the trash", len(want))
	}
}

// TestBesideWriter: a check beside somebody who appends, replaces, seals and forks finds nothing.
func TestBesideWriter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newPatient(t, state{true, true})
	s, err := engine.Open(p.root, engine.WithSealBytes(4<<10))
	check(t, err)
	defer s.Close()
	c, err := s.Context(ctx, p.id)
	check(t, err)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			err := appendTo(c.Active(), 200+n, 201+n)
			if err == nil && n%3 == 0 {
				err = c.Active().Replace(ctx, p.ids["main"][n%24], engine.Draft{Body: body(n)}, engine.Shared())
			}
			if err == nil && n%7 == 0 {
				err = c.Seal(ctx)
			}
			if err == nil && n%11 == 0 {
				_, err = c.Active().Fork(ctx, uuid.NewString(), int64(n%20))
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	checks, err := engine.Open(p.root)
	check(t, err)
	for range 8 {
		for f, err := range checking.Check(ctx, checks, nil, checking.Options{ReadData: true}) {
			check(t, err)
			t.Errorf("%+v", f)
		}
	}
	close(stop)
	check(t, <-done, c.Close(), checks.Close())
}

// TestNewerFormat: a file of a newer program stays as it is.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, false})
	p.change(p.view(6), false, replacing("message/1", "message/2"))
	p.only(p.check(), integrity.KindUnread, warn, 1)
	if done, left := p.repair(checking.Options{}); len(done) > 0 || left != 1 {
		t.Errorf("%d left, %+v", left, done)
	}
}

// TestLogAndSegment: without its log, a context has what its segments have, even if the newest of them is damaged.
func TestLogAndSegment(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{false, true})
	p.archive()
	check(t, os.Remove(p.newestLog()))
	p.change(p.segment(0), false, func(b []byte) []byte { return b[:len(b)-9] })
	p.repair(checking.Options{})
	if n := p.lost(); n != 8+3 {
		t.Errorf("%d are lost", n)
	}
	p.only(p.check(), "", "", 0)
}

// TestFrameFromFile: a message whose place in a segment is damaged is there again, as it was committed, from its file.
func TestFrameFromFile(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, false})
	entry := func() (seq uint64) {
		p.do(func(c *engine.Context) error {
			e, _, err := c.Index.Entry(c.Metadata().Lines[0].ID, 13)
			seq = e.Seq
			return err
		})
		return seq
	}
	was := entry()
	garble(p, p.segment(0), 13)
	p.heal(integrity.KindSegment, warn, 0, checking.Options{})
	if is := entry(); is != was {
		t.Errorf("record %d has it, %d had it before", is, was)
	}
}

// TestForkLost: a branch whose own first message is lost does not show one of its parent in its place.
func TestForkLost(t *testing.T) {
	t.Parallel()
	for _, views := range []bool{true, false} {
		p := newPatient(t, state{views, true})
		if !views {
			p.archive()
		}
		p.do(func(c *engine.Context) error {
			b, err := c.Active().Fork(context.Background(), "third", 5)
			if err == nil {
				err = appendTo(b, 301, 304)
			}
			return err
		})
		p.want["third"] = append(slices.Clone(p.want["main"][:5]), string(body(301)), string(body(302)), string(body(303)))
		lost := 0
		if !views {
			check(t, os.RemoveAll(p.path("messages")))
			lost = 1
		}
		p.change(p.newestLog(), false, replacing("short 301", "shost 301"))
		if n := p.lost(); n != lost {
			t.Errorf("%d are lost before the repair", n)
		}
		p.heal(integrity.KindLog, bad, lost, checking.Options{})
	}
}
