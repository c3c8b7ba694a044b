package index

import (
	"bytes"
	"fmt"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// Recommit begins a new journal after a failed sync. That journal repeats every whole record since the last fold, so
// that nothing depends on what the failed sync brought to disk. Recommit reports whether the records of c are among
// them and therefore durable now. The caller holds the context lock.
func (l *Log) Recommit(c *Commit) (bool, error) {
	l.advance.Lock()
	defer l.advance.Unlock()
	if err := l.prepare(false); err != nil { // begins the new journal, unless another process did
		return false, err
	}
	if err := l.state.newest().makeDurable(); err != nil {
		return false, err
	}
	return l.state.newest().has(c.last), nil
}

// recommit writes the new journal.
//
// Crash order: until the folder's sync the new journal may be missing, and the old ones count as far as they are whole.
// From then on the new one counts: it begins before the old one's end.
func (l *Log) recommit() error {
	x, err := readIndexFile(l.dir)
	if err != nil {
		return err
	}
	gen := l.state.newest().gen + 1
	if err := l.clearWay(gen); err != nil {
		return err
	}
	metadata := l.state.metadataCopy()
	if x.Metadata != nil { // as of the last fold: records follow
		metadata = x.Metadata
	}
	b, err := encodeBegin(l.dir, gen, Spot{x.Seq, x.chain}, countsOf(x.Lines), metadata)
	if err != nil {
		return err
	}
	err = l.createJournal(gen, func(f vfs.File) error {
		beginning := append(bytes.TrimRight(b, "\n"), '\n')
		if _, err := f.Write(beginning); err != nil {
			return err
		}
		end := int64(len(beginning))
		seq := x.Seq
		for _, j := range l.state.journals {
			_, _, err := j.scan(j.first, j.begin.Seq, j.begin.chain, nil, func(rec record) error {
				if rec.seq <= seq || rec.seq > l.state.seq { // the latter are of a commit that a crash tore
					return nil
				}
				seq = rec.seq
				whole := make([]byte, rec.size())
				if _, err := j.f.ReadAt(whole, rec.off); err != nil {
					return err
				}
				_, err := f.Write(whole)
				end += rec.size()
				return err
			}, nil)
			if err != nil {
				return err
			}
		}
		_, err := f.Write(bytes.Repeat([]byte{'\n'}, space(end)))
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: cannot create a new journal after a failed sync: %w", ErrDurability, err)
	}
	if err := l.reload(); err != nil {
		return err
	}
	if j := l.state.newest(); j.gen == gen && !l.state.unsaved {
		j.setDurable()
	}
	return nil
}
