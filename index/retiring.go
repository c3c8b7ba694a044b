package index

import (
	"slices"

	"github.com/google/uuid"
)

// retire forgets what a fold brought into index.json: journals, and the entries that now have rows. It reports whether
// the state is then that of x, which it is not while it has journals to read.
func (s *state) retire(x *folded) bool {
	if s.unsaved {
		return false // it was rebuilt because the rows are unreliable
	}
	for len(s.journals) > 1 && s.journals[0].gen < x.Live {
		_ = s.journals[0].f.Close()
		s.journals = s.journals[1:]
	}
	if s.journals[0].gen < x.Live {
		return false
	}
	s.settled = x.Settled
	for sum, at := range s.payloads {
		if at.gen < x.Live {
			delete(s.payloads, sum)
		}
	}
	s.kept.only(x.retained())
	s.superseded = slices.DeleteFunc(s.superseded, func(gen uint64) bool { return gen < x.Live })
	s.rows.Clear() // a rebuild may have replaced the files
	for id, ln := range s.lines {
		if ln.Count == 0 && ln.cut <= x.Seq {
			delete(s.lines, id)
			continue
		}
		n := len(ln.recent)
		for n > 0 && ln.recent[n-1].seq > x.Seq {
			n--
		}
		for i := range n { // all of them have rows, even those replaced since
			if e := ln.recent[i]; e.seq > x.Seq {
				ln.changeRow(e)
			}
		}
		ln.byID = nil
		ln.recent = slices.Clone(ln.recent[n:])
		ln.start += int64(n)
		for p, e := range ln.changed {
			if e.seq <= x.Seq {
				delete(ln.changed, p)
			}
		}
	}
	packs := map[uuid.UUID]bool{}
	for i := range x.Lines {
		if ln := s.lines[x.Lines[i].Line]; ln != nil {
			if !slices.Equal(ln.Packs, x.Lines[i].Packs) {
				s.dir.ForgetFolders() // archiving may have removed one
			}
			ln.Stored = x.Lines[i].Stored
			ln.Lost, ln.unfound = x.Lines[i].Lost, nil
		}
		for _, id := range x.Lines[i].Packs {
			packs[id] = true
		}
	}
	s.packs.Only(func(id uuid.UUID) bool { return packs[id] })
	return true
}

// recount takes over another process's byte counts of lines at the state's end: it may have erased messages.
func (s *state) recount(lines []Counts) {
	for _, c := range lines {
		if ln := s.lines[c.Line]; ln != nil {
			ln.Bytes = c.Bytes
		}
	}
}
