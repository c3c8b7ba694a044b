package index

import (
	"fmt"
	"io"
	"slices"
	"sort"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// Placement says where the folded entries of a line are: in its row file, and in packs.
//
// The row file has, in order, the rows of positions below Dense that are not read from a pack, then one row for each
// position from Dense on. So a row counts before a pack; of two packs with a position, the later named one counts.
type Placement struct {
	Rows     uint64      `json:"rows,omitempty"`           // the number in the row file's name
	Apart    int64       `json:"apart,omitempty"`          // number of rows of positions below Dense
	Dense    int64       `json:"dense,omitempty"`          // 0 without packs: every position has a row
	Packs    []uuid.UUID `json:"packs,omitempty"`          // packs that serve the line
	Archived int64       `json:"archived_bytes,omitempty"` // bytes of the envelopes that are read from packs
}

// maxPacks bounds the packs that may serve one line.
const maxPacks = 1 << 12

// sane reports whether values read from a file are possible for a line.
func (st *Placement) sane(c *Counts) bool {
	return st.Apart >= 0 && st.Archived >= 0 && len(st.Packs) <= maxPacks &&
		(len(st.Packs) == 0 && st.Apart == 0 && st.Dense == 0 ||
			len(st.Packs) > 0 && st.Dense > c.Base && st.Dense <= maxSeq && st.Apart < st.Dense-c.Base)
}

// dense returns the position from which on each has a row.
func (st *Placement) dense(base int64) int64 {
	if len(st.Packs) == 0 {
		return base
	}
	return st.Dense
}

// first returns the position that the file's first row would have if all rows were as dense as the last ones.
func (st *Placement) first(base int64) int64 { return st.dense(base) - st.Apart }

// readRows returns the entries of the positions [from, to) of a line, all of which are folded. If one is damaged or
// missing, the error wraps ErrDamaged.
func (s *state) readRows(ln *line, from, to int64) ([]Entry, error) {
	dense := ln.dense(ln.Base)
	if from >= min(to, dense) {
		return s.readDense(ln, from, to)
	}
	entries, err := s.readMixed(ln, from, min(to, dense))
	if err != nil || to <= dense {
		return entries, err
	}
	rest, err := s.readDense(ln, dense, to)
	return append(entries, rest...), err
}

// readMixed is readRows below the dense part.
func (s *state) readMixed(ln *line, from, to int64) ([]Entry, error) {
	packs := make([]*openPack, 0, len(ln.Packs))
	defer func() {
		for _, p := range packs {
			p.Release()
		}
	}()
	have := ln.Apart
	for _, id := range ln.Packs {
		p, err := s.openPack(id)
		if err != nil {
			return nil, fmt.Errorf("line %s: %w", ln.Line, err)
		}
		packs, have = append(packs, p), have+p.Len()
	}
	if have < to-from { // allocate for the existing entries, not for the request
		return nil, fmt.Errorf("%w: line %s has %d entries below position %d", ErrDamaged, ln.Line, have, ln.Dense)
	}
	entries, there := make([]Entry, to-from), make([]bool, to-from)
	missing := to - from
	take := func(e Entry) {
		if i := e.Position - from; !there[i] {
			entries[i], there[i] = e, true
			missing--
		}
	}
	if err := s.readApart(ln, from, to, take); err != nil {
		return nil, err
	}
	for i := len(packs) - 1; i >= 0 && missing > 0; i-- {
		first := int64(slices.Index(there, false))
		for e := range packs[i].entries(ln.Line, from+first, to) {
			take(e)
		}
	}
	if missing > 0 {
		return nil, fmt.Errorf("%w: position %d of line %s is in no pack", ErrDamaged, from+int64(slices.Index(there, false)), ln.Line)
	}
	return entries, nil
}

// readApart yields the rows of positions [from, to) below the dense part.
func (s *state) readApart(ln *line, from, to int64, yield func(Entry)) error {
	if ln.Apart == 0 {
		return nil
	}
	r, err := s.openRowFile(ln)
	if err != nil {
		return err
	}
	defer r.Release()
	if err := hasRows(r, ln, ln.Apart); err != nil {
		return err
	}
	at := func(n int64) (e Entry, err error) {
		b := make([]byte, rowWidth)
		if _, err := r.ReadAt(b, n*rowWidth); err != nil && err != io.EOF { //nolint:errorlint // as documented
			return e, err
		}
		if e, err = parseRow(b); err != nil {
			err = fmt.Errorf("line %s, row %d: %w", ln.Line, n, err)
		}
		return e, err
	}
	n := int64(sort.Search(int(ln.Apart), func(i int) bool {
		if err != nil {
			return true
		}
		var e Entry
		e, err = at(int64(i))
		return err != nil || e.Position >= from
	}))
	last := from - 1
	for ; err == nil && n < ln.Apart; n++ {
		var e Entry
		if e, err = at(n); err != nil || e.Position >= to {
			break
		}
		if e.Position <= last {
			return fmt.Errorf("%w: row %d of line %s is out of order: it has position %d", ErrDamaged, n, ln.Line, e.Position)
		}
		last = e.Position
		yield(e)
	}
	return err
}

// rowsBuilder writes the row file of a line from all its entries, in order.
type rowsBuilder struct {
	dir    *ctxfolder.Dir
	counts Counts
	packs  []uuid.UUID // in ascending order of precedence
	used   map[uuid.UUID]bool
	stored Placement
	rows   *rowsWriter
	n      int64 // rows written
}

// buildRows begins a row file. It first removes an unnamed one with that number, which a stopped process or a failed
// sync left: nothing may write to it again. packs are those that entries may be in, in ascending order of precedence.
func buildRows(dir *ctxfolder.Dir, c Counts, number uint64, packs []uuid.UUID) (*rowsBuilder, error) {
	name := ctxfolder.RowsFile(c.Line, number)
	if info, err := dir.FS.Lstat(name); err == nil && info.Mode().IsRegular() {
		if err := dir.FS.Remove(name); err != nil {
			return nil, err
		}
	}
	b := &rowsBuilder{dir: dir, counts: c, packs: packs, used: map[uuid.UUID]bool{}, stored: Placement{Rows: number}}
	var err error
	b.rows, err = openRows(dir, name, 0)
	return b, err
}

// put adds the entry of the next position.
func (b *rowsBuilder) put(e *Entry) error {
	if e.Pack != uuid.Nil {
		b.used[e.Pack] = true
		b.stored.Archived += e.Size
		b.stored.Apart, b.stored.Dense = b.n, e.Position+1
		return nil
	}
	b.n++
	return b.rows.putAt(b.n-1, e)
}

// finish makes the file durable, except for its name, and returns where the entries are.
func (b *rowsBuilder) finish() (Placement, error) {
	err := b.rows.close()
	for _, id := range b.packs {
		if b.used[id] {
			b.stored.Packs = append(b.stored.Packs, id)
		}
	}
	return b.stored, err
}

// abandon closes the file.
func (b *rowsBuilder) abandon() { _ = b.rows.f.Close() }
