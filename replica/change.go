package replica

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// change makes the changes: those of the store first, so that the peer gets the branches that keep local messages by their
// names.
func change(ctx context.Context, local, remote Peer, plans []*plan, o Options) error {
	if !o.Push {
		t := transfer{from: remote, to: local, side: func(p *plan) (*side, *Head, bool) { return &p.local, &p.l, p.createL }}
		if err := t.run(ctx, plans); err != nil {
			return err
		}
	}
	if !o.Pull {
		t := transfer{from: local, to: remote, side: func(p *plan) (*side, *Head, bool) { return &p.remote, &p.r, p.createR }}
		return t.run(ctx, plans)
	}
	return nil
}

// transfer makes the changes of one side, with messages of the other one.
type transfer struct {
	from, to Peer
	side     func(*plan) (to *side, head *Head, create bool)
	spool    *spool
}

// job is what is left to do of a plan.
type job struct {
	p     *plan
	head  *Head
	steps []step
	first bool
}

func (t *transfer) run(ctx context.Context, plans []*plan) (err error) {
	t.spool = &spool{}
	defer func() {
		if cerr := t.spool.close(); err == nil {
			err = cerr
		}
	}()
	var jobs []*job
	for _, p := range plans {
		if to, head, _ := t.side(p); p.err == nil && to.hasWork(p.remove) {
			jobs = append(jobs, &job{p: p, head: head, steps: to.steps, first: true})
		}
	}
	for len(jobs) > 0 {
		if err := t.round(ctx, jobs); err != nil {
			return err
		}
		jobs = slices.DeleteFunc(jobs, func(j *job) bool { return j.p.err != nil || !j.first && len(j.steps) == 0 })
	}
	return nil
}

// round reads as many messages as fit into memory, and makes the changes that need no others.
func (t *transfer) round(ctx context.Context, jobs []*job) error {
	var ranges []Range
	var whose []*job
	for _, j := range jobs {
		for i := range j.steps {
			if x := &j.steps[i]; x.from.ID != uuid.Nil {
				x.asked = len(ranges)
				ranges, whose = append(ranges, x.from), append(whose, j)
			}
		}
	}
	var got []Message
	if len(ranges) > 0 {
		var err error
		if got, err = t.from.Read(ctx, ranges, chunk); err != nil {
			return withoutGone(ctx, t.from, ranges, err, func(i int, err error) { whose[i].p.err = err })
		}
		if len(got) == 0 {
			return fmt.Errorf("the peer sent none of the messages [%d, %d) of line %s", ranges[0].From, ranges[0].To, ranges[0].Line)
		}
	}
	var changes []Change
	var of []*job
	var wanted []PayloadOf
	for _, j := range jobs {
		ch, payloads, left := t.next(j, got)
		done := len(got) - len(left)
		got = left
		if j.p.err != nil {
			break
		}
		if j.first || done > 0 || len(ch.Ops) > 0 {
			changes, of, wanted = append(changes, ch), append(of, j), append(wanted, payloads...)
			j.first = false
		}
		if len(j.steps) > 0 {
			break // the messages end here
		}
	}
	if err := t.fetch(ctx, wanted); err != nil {
		return err
	}
	results, err := t.to.Apply(ctx, changes, t.spool.open)
	if err != nil {
		return err
	}
	if len(results) != len(changes) {
		return fmt.Errorf("the peer sent %d results, not %d", len(results), len(changes))
	}
	for i, r := range results {
		j := of[i]
		if r.Err != nil {
			j.p.err = r.Err
			if len(r.Branches) > 0 { // what failed came after the commit
				j.head.Branches = r.Branches
				j.p.move(changes[i].Ops)
			}
			continue
		}
		// Otherwise the earlier one counts, and the next run compares what came after it. So another line that has a message
		// which got another version gets it too.
		if r.Commit != "" && len(j.p.versions) == 0 {
			j.head.Commit = r.Commit
		}
		j.head.Sequence, j.head.Branches = r.Sequence, r.Branches
		j.p.move(changes[i].Ops)
	}
	return nil
}

// move notes what operations made of branches.
func (p *plan) move(ops []Op) {
	if p.moved == nil {
		p.moved = map[string]int64{}
	}
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case OpNew:
			p.moved[op.Branch] = 0
		case OpFork, OpRewind:
			p.moved[op.Branch] = op.N
		case OpAppend:
			p.moved[op.Branch] = op.Messages[len(op.Messages)-1].Position + 1
		}
	}
}

// next makes a change of the steps of a job, as far as messages are there. It returns the messages that are left.
func (t *transfer) next(j *job, got []Message) (ch Change, payloads []PayloadOf, left []Message) {
	to, _, create := t.side(j.p)
	ch.ID = j.p.id
	if j.p.remove == to {
		ch.Remove = true
		if j.head.Commit != "" {
			ch.Sequence = &j.head.Sequence
		}
		return ch, nil, got
	}
	if create && j.first {
		ch.Create = &j.p.merged
	} else {
		ch.Sequence = &j.head.Sequence
	}
	for len(j.steps) > 0 {
		x := &j.steps[0]
		if x.from.ID == uuid.Nil {
			ch.Ops = append(ch.Ops, x.op)
			j.steps = j.steps[1:]
			continue
		}
		n := x.those(got)
		if n == 0 {
			if len(got) > 0 {
				j.p.err = fmt.Errorf("%w: the peer sent another message than %d of line %s", ctxdir.ErrPosition, x.from.From, x.from.Line)
			}
			return ch, payloads, got
		}
		op := x.op
		op.Messages = got[:n]
		ch.Ops = append(ch.Ops, op)
		for _, m := range op.Messages {
			for _, sum := range m.Payloads {
				payloads = append(payloads, PayloadOf{Sum: sum, ID: x.from.ID, Line: x.from.Line, Message: m.ID})
			}
		}
		got = got[n:]
		if x.from.From += int64(n); x.from.From < x.from.To {
			return ch, payloads, got
		}
		j.steps = j.steps[1:]
	}
	ch.Erase = to.erase
	return ch, payloads, got
}

// those returns how many of the messages are the ones of a step, which come next.
func (x *step) those(got []Message) (n int) {
	for n < len(got) && got[n].Of == x.asked && got[n].Position == x.from.From+int64(n) && got[n].Position < x.from.To {
		n++
	}
	return n
}

// fetch gets the payloads that the receiver lacks.
func (t *transfer) fetch(ctx context.Context, wanted []PayloadOf) error {
	var sums []string
	of := map[string]PayloadOf{}
	for _, w := range wanted {
		if _, ok := of[w.Sum]; !ok && !t.spool.has(w.Sum) {
			of[w.Sum] = w
			sums = append(sums, w.Sum)
		}
	}
	if len(sums) == 0 {
		return nil
	}
	have, err := t.to.Have(ctx, sums)
	if err != nil {
		return err
	}
	var missing []PayloadOf
	for i, sum := range sums {
		if i >= len(have) || !have[i] {
			missing = append(missing, of[sum])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return t.from.Get(ctx, missing, t.spool.put)
}

// spool keeps payloads on their way in temporary files.
type spool struct {
	dir   string
	sizes map[string]int64
}

func (s *spool) has(sum string) bool {
	_, ok := s.sizes[sum]
	return ok
}

func (s *spool) put(sum string, size int64, r io.Reader) (err error) {
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "ctxdir-replica-"); err != nil {
			return err
		}
		s.sizes = map[string]int64{}
	}
	f, err := os.OpenFile(s.path(sum), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, size))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && n != size {
		err = fmt.Errorf("payload %s: %w", sum, io.ErrUnexpectedEOF)
	}
	if err == nil {
		s.sizes[sum] = size
	}
	return err
}

// path returns the file of a payload. The name is one that was asked for, so it has nothing but hexadecimal digits.
func (s *spool) path(sum string) string { return s.dir + string(os.PathSeparator) + sum }

func (s *spool) open(sum string) (io.ReadCloser, int64, error) {
	if !s.has(sum) {
		return nil, 0, fs.ErrNotExist
	}
	f, err := os.Open(s.path(sum))
	return f, s.sizes[sum], err
}

func (s *spool) close() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
