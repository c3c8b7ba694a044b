package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// A folder holds files of two histories when an older or another copy of a context was copied over it. The chain of the
// records distinguishes the journals. The history is that of index.json, and a newer journal belongs to it only if it
// continues the previous one.

// endSpot returns the place after the last record of a journal. exact is false when the journal is damaged or torn: it
// may then have ended later.
func (j *journal) endSpot() (at Spot, exact bool) {
	n, err := j.whole()
	at = Spot{j.seq, j.chain}
	if k := len(n.changes); k > 0 {
		at = Spot{n.changes[k-1].seq, n.changes[k-1].chain}
	}
	return at, err == nil && !n.torn
}

// errFound stops a scan.
var errFound = errors.New("found")

// has reports whether a place is in a journal: the journal begins there, or has the record before it.
func (j *journal) has(at Spot) bool {
	if at.Seq <= j.begin.Seq {
		return at == Spot{j.begin.Seq, j.begin.chain}
	}
	found := false
	_, _, _ = j.scan(j.first, j.begin.Seq, j.begin.chain, nil, func(rec record) error {
		if rec.seq < at.Seq {
			return nil
		}
		found = at == Spot{rec.seq, rec.chain}
		return errFound
	}, nil)
	return found
}

// follows reports whether a journal continues an older one: it begins where that ends or, after a failed sync, repeats
// that. It also follows a journal that lost its end: damage must not make the newer one look foreign.
func (j *journal) follows(before *journal) bool {
	end, exact := before.endSpot()
	return !exact && j.begin.Seq > end.Seq || j.has(end)
}

// contradicts reports whether a journal cannot belong to the history of an older one.
func (j *journal) contradicts(before *journal) bool {
	end, _ := before.endSpot()
	return j.begin.Seq <= end.Seq && !j.has(end)
}

// newestAt returns the time of the newest message in a journal, or of its begin record.
func (j *journal) newestAt() int64 {
	n, _ := j.whole()
	at := j.begin.CreatedAt.UnixNano()
	for i := range n.changes {
		if c := &n.changes[i]; c.kind == KindAppend || c.kind == KindReplace {
			at = max(at, c.address.StoredAt.UnixNano())
		}
	}
	return at
}

// ofOneHistory splits journals into those of one history, in order, and the others. The history is that of index.json
// if its live journal exists. Otherwise it is that of the newest message: messages that were acknowledged after the
// mixing are newer than both histories.
func ofOneHistory(journals []*journal, x *indexFile) (own, others []*journal) {
	if len(journals) < 2 {
		return journals, nil
	}
	first := slices.IndexFunc(journals, func(j *journal) bool { return x != nil && j.gen == x.Live && j.has(Spot{x.Seq, x.chain}) })
	anchored := first >= 0
	if !anchored {
		newest := slices.MaxFunc(journals, func(a, b *journal) int { return cmp.Compare(a.newestAt(), b.newestAt()) })
		first = slices.Index(journals, newest)
	}
	own = []*journal{journals[first]}
	for _, j := range slices.Backward(journals[:first]) {
		if own[0].contradicts(j) {
			others = append(others, j)
		} else {
			own = slices.Insert(own, 0, j)
		}
	}
	for _, j := range journals[first+1:] {
		last := own[len(own)-1]
		if j.contradicts(last) || anchored && !j.follows(last) {
			others = append(others, j)
		} else {
			own = append(own, j)
		}
	}
	return own, others
}

// replaced returns the journals of gens that do not lead to the last one: files of another history took their places.
// gens are journals that index.json names, oldest first.
func (l *Log) replaced(gens []uint64) (replaced []uint64) {
	var next *journal
	adjacent, broken := false, false
	for _, gen := range slices.Backward(gens) {
		j, err := openJournal(l.dir, gen, nil)
		if err != nil {
			adjacent = false // it is missing or damaged
			continue
		}
		broken = broken || next != nil && (next.contradicts(j) || adjacent && !next.follows(j))
		if broken {
			replaced = append(replaced, gen)
		}
		if next != nil {
			_ = next.f.Close()
		}
		next, adjacent = j, true
	}
	if next != nil {
		_ = next.f.Close()
	}
	return replaced
}

// clearWay moves a file in the place of a new journal to the trash if it may hold a record: a journal of another
// history. Blank space and a begin record that a crash tore hold none.
//
// Crash order: until the move is durable, the next writer finds the journal and moves it again.
func (l *Log) clearWay(gen uint64) error {
	name := ctxfolder.JournalFile(gen)
	if _, err := l.dir.FS.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if regular(l.dir, name) {
		f, err := l.dir.FS.OpenFile(name, os.O_RDONLY)
		if err != nil {
			return err
		}
		j := &journal{gen: gen, f: f}
		blank, err := j.blankBehind(0)
		empty := blank || j.unbegun()
		if err = cmp.Or(err, f.Close()); err != nil || empty {
			return err
		}
	}
	return l.trash(name)
}

// selectHistory closes the journals of other histories. It also closes the journals older than those that index.json
// names: they were settled, or they are of another history. Nothing distinguishes the two, so their contents only fill
// gaps.
func (s *state) selectHistory(held []*journal, x *indexFile) {
	if x != nil && len(x.Journals) > 0 {
		n, _ := slices.BinarySearchFunc(s.journals, x.Journals[0], func(j *journal, gen uint64) int { return cmp.Compare(j.gen, gen) })
		_ = closeBut(s.journals[:n], held)
		s.journals = s.journals[n:]
	}
	own, others := ofOneHistory(s.journals, x)
	for _, j := range others {
		s.note("journal", "%s belongs to another history", ctxfolder.JournalFile(j.gen))
		s.foreign = append(s.foreign, j.gen)
	}
	_ = closeBut(others, held)
	s.journals = own
}

// newChain returns a random start for the chain of a journal that continues no record.
func newChain() uint64 {
	id := uuid.New()
	return binary.BigEndian.Uint64(id[8:])
}
