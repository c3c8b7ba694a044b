package index

import (
	stdcontext "context"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/google/uuid"
)

// shedPart bounds the journal that stays as a second copy of the newest messages, to 1/shedPart of the context's size.
const shedPart = 8

// ShedDue reports whether the unsettled journals have grown to times the size at which a journal is folded.
func (l *Log) ShedDue(times int64) bool {
	var size int64
	_ = l.view(func(s *state) {
		for _, j := range s.journals {
			size += j.end - j.first
		}
		for _, gen := range s.folded.gens {
			if gen > s.settled {
				size += s.journalSize(gen)
			}
		}
	})
	return size >= times*l.opts.FoldBytes
}

// CanShed reports whether there are folded journals that [Log.Shed] can remove.
func (l *Log) CanShed() (bulky bool) {
	_ = l.view(func(s *state) {
		var folded, all int64
		for _, gen := range s.folded.gens {
			folded += s.journalSize(gen)
		}
		for _, j := range s.journals {
			folded += j.end - j.first
		}
		folded -= s.unfoldedSize()
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

// Shed is [Log.Fold] with settle. If the folded journals are large beside the context, it also removes all of them and
// begins a journal of the least size, unless a writer appends meanwhile. The disk then has the context about once.
//
// Crash order: the fold has read everything back and made it durable. The new journal is durable before index.json
// names it alone. The others go last.
func (l *Log) Shed(ctx stdcontext.Context) error {
	if ok, err := l.dir.FoldLock.TryAcquire(); !ok || err != nil {
		return err
	}
	defer l.dir.FoldLock.Release()
	if err := l.fold(ctx, true); err != nil || !l.CanShed() {
		return err
	}
	a := arrangement{log: l}
	if err := a.begin(); err != nil {
		return err
	}
	return l.underLock(ctx, func(map[uuid.UUID]string) error {
		_, err := a.commitAlone()
		return err
	})
}

// commitAlone replaces index.json, with a new journal as the only one. A handle that relies on the others for a message
// reads the index again. commitAlone does nothing if a writer appended meanwhile. The caller holds the context lock.
func (a *arrangement) commitAlone() (done bool, err error) {
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
