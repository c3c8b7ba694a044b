package index

import (
	stdcontext "context"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// shedPart bounds the journal that stays as a second copy of the newest messages: to this part of what the context holds.
const shedPart = 8

// ShedDue reports whether the journals that are not settled have grown to so many times the size at which a journal is folded.
func (l *Log) ShedDue(times int64) bool {
	var size int64
	_ = l.view(func(s *state) {
		for _, j := range s.journals {
			size += j.end - j.first
		}
		for _, gen := range s.kept.gens {
			if gen > s.settled {
				size += s.journalSize(gen)
			}
		}
	})
	return size >= times*l.opts.FoldBytes
}

// Bulky reports whether folded journals are there that [Log.Shed] can let go of.
func (l *Log) Bulky() (bulky bool) {
	_ = l.view(func(s *state) {
		var folded, all int64
		for _, gen := range s.kept.gens {
			folded += s.journalSize(gen)
		}
		for _, ln := range s.lines {
			all += ln.Bytes
		}
		bulky = folded > all/shedPart
	})
	return bulky
}

func (s *state) journalSize(gen uint64) (size int64) {
	if info, err := s.dir.FS.Lstat(ctxfolder.JournalFile(gen)); err == nil {
		size = info.Size()
	}
	return size
}

// Shed is [Log.Fold] with settle that leaves no folded journal where they are large beside what the context holds, and a new one that takes no more room
// than it needs, unless somebody appends meanwhile. So the disk has a context about once.
//
// Crash order: the fold has read everything back and made it durable. The new journal is durable before index.json names it alone, and the others go last.
func (l *Log) Shed(ctx stdcontext.Context) error {
	if ok, err := l.dir.FoldLock.TryAcquire(); !ok || err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	if err := l.fold(ctx, true); err != nil || !l.Bulky() {
		return err
	}
	a := arranging{log: l}
	if err := a.begin(); err != nil {
		return err
	}
	return l.underLock(ctx, func(map[uuid.UUID]string) error {
		_, err := a.commitAlone()
		return err
	})
}

// commitAlone replaces index.json, with a new journal as the only one: who took the others for the copy of a message reads the index again. It does
// nothing where somebody appended meanwhile. The folder's lock is held.
func (a *arranging) commitAlone() (done bool, err error) {
	l := a.log
	if err := l.prepare(true); err != nil {
		return false, err
	}
	if newest := l.state.newest(); newest.gen != a.x.Live || l.state.seq != a.x.Seq {
		return false, nil
	}
	if err := l.renew(tight); err != nil {
		return false, err
	}
	keep := []uint64{l.state.newest().gen}
	a.work.journals = append(a.work.journals, keep...)
	return true, l.commit(a.work, keep)
}
