package index

import (
	"errors"
	"io/fs"

	"github.com/ctxdir/ctxdir/archive"
)

const (
	// together is how many neighbours of about the same size become one archive.
	together = 8
	// most bounds the envelopes of a segment, in bytes: what an erasure rewrites.
	most = 64 << 20
)

// level is the size of a segment, as a power of 8.
func level(bytes int64) (n int) {
	for bytes >= together*1<<10 {
		bytes /= together
		n++
	}
	return n
}

// Merge makes one segment of eight neighbours of a level, until there are none. It removes what a crash left over. The
// caller holds the lock for sealing.
//
// Crash order: the segment is durable under its name before those that it contains go. While both are there, the larger
// one counts.
func (ix *Index) Merge(o archive.Options) error {
	for {
		all, err := ix.held()
		if err != nil {
			return err
		}
		var from, n int
		for _, o := range all.all {
			err = errors.Join(err, o.need())
		}
		if err == nil {
			from, n = due(all.all)
		}
		if n > 0 {
			err = ix.merge(all.all[from:from+n], o)
		}
		all.release()
		if errors.Is(err, archive.ErrDamaged) {
			err, n = nil, 0 // a merge could not tell what is missing
		}
		if err != nil || n == 0 {
			return errors.Join(err, ix.clear())
		}
	}
}

// follows reports whether no segment is missing between two. Otherwise they stay apart: one in their place would hide that.
func (o *openSegment) follows(before *openSegment) bool { return o.name.From == before.name.To+1 }

// due returns the oldest neighbours that are to become one.
func due(all []*openSegment) (from, n int) {
	for i := 0; i+together <= len(all); i++ {
		sum := all[i].Bytes()
		same := true
		for j := i + 1; j < i+together; j++ {
			sum += all[j].Bytes()
			same = same && all[j].follows(all[j-1]) && level(all[j].Bytes()) <= level(all[i].Bytes())
		}
		if same && sum <= most {
			return i, together
		}
	}
	return 0, 0
}

func (ix *Index) merge(in []*openSegment, o archive.Options) error {
	if len(in) == 1 {
		o.Edition = in[0].name.Edition + 1
	}
	w, err := archive.Create(ix.dir.Segments, ix.dir.Context, o)
	if err != nil {
		return err
	}
	defer w.Abort()
	last := in[len(in)-1]
	state, err := last.State()
	if err != nil {
		return err
	}
	plain := make([]*archive.Segment, len(in))
	for i := range in {
		plain[i] = in[i].Segment
	}
	x := archive.Rewrite{}
	if err := x.Run(w, plain); err != nil {
		return err
	}
	file, _, err := w.Commit(in[0].From(), last.To(), state)
	if err != nil {
		return err
	}
	return ix.replaceSegments(in, file)
}

// clear removes segments that others contain: parts, and older editions, and logs that segments contain. What another
// history has stays.
//
// Crash order: a process may have been killed after it gave a segment its name, and before that was durable. So the names are
// durable before anything goes.
func (ix *Index) clear() error {
	all, err := ix.held()
	if err != nil {
		return err
	}
	defer all.release()
	names, err := ix.otherSegments(all)
	if err != nil {
		return err
	}
	var rest []string
	for _, n := range names {
		for _, o := range all.all {
			in, err := o.contains(n)
			if err != nil {
				return err
			}
			if in {
				rest = append(rest, n.File())
			}
		}
	}
	logs, err := ix.sealedLogs(all)
	if err != nil || len(rest)+len(logs) == 0 {
		return err
	}
	if err := ix.dir.Segments.SyncDir("."); err != nil {
		return err
	}
	for _, file := range rest {
		if err := ix.removeSegment(file); err != nil {
			return err
		}
	}
	for _, name := range logs {
		if err := ix.dir.Logs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Compress makes segments as large as they may be, and compresses those that are stored. The caller holds the lock for
// sealing.
func (ix *Index) Compress(o archive.Options) error {
	done := map[uint64]bool{} // the ends of segments: what cannot be compressed looks stored once more
	for {
		all, err := ix.held()
		if err != nil {
			return err
		}
		for _, o := range all.all {
			err = errors.Join(err, o.need())
		}
		from, n := 0, 0
		if err == nil {
			from, n = loose(all.all, done)
		}
		if n > 0 {
			done[all.all[from+n-1].name.To] = true
			err = ix.merge(all.all[from:from+n], o)
		} else if err == nil {
			err = ix.clear()
		}
		all.release()
		if err != nil || n == 0 {
			return err
		}
	}
}

// loose returns the oldest neighbours that can become one, or one that is stored and not done.
func loose(all []*openSegment, done map[uint64]bool) (from, n int) {
	for from < len(all) {
		sum := all[from].Bytes()
		for n = 1; from+n < len(all) && all[from+n].follows(all[from+n-1]) && sum+all[from+n].Bytes() <= most; n++ {
			sum += all[from+n].Bytes()
		}
		if n > 1 || sum > 0 && all[from].Size() > sum && !done[all[from].name.To] {
			return from, n
		}
		from++
	}
	return 0, 0
}

// Sizes returns the length of the segments' files, and of the envelopes in them, in bytes.
func (ix *Index) Sizes() (size, raw int64, err error) {
	all, err := ix.held()
	if err != nil {
		return 0, 0, err
	}
	defer all.release()
	for _, o := range all.all {
		if err := o.need(); err != nil {
			return 0, 0, err
		}
		size, raw = size+o.Size(), raw+o.Bytes()
	}
	return size, raw, nil
}
