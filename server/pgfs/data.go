package pgfs

import (
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// maxUnsaved is how many bytes of a file wait for its sync in memory. More are written before, without a wait.
const maxUnsaved = 1 << 20

// load reads the extents of a file, once: the data of a small file with them. The caller holds n.mu.
func (v *volume) load(n *node) error {
	if n.loaded {
		return v.alive()
	}
	inline := 64
	if n.size <= maxSmall {
		inline = 2 * maxSmall
	}
	c, hole := content{most: v.most()}, &extent{size: n.size, data: broken(1), run: true, stored: true}
	if n.size > 0 {
		c.place(0, n.size, hole) // all of it is covered below
	}
	var found []error
	err := v.read(func(rows pgx.Rows) error {
		x := &extent{stored: true}
		var length int64
		var sealed []byte
		var object pgtype.UUID
		if err := rows.Scan(&x.n, &x.off, &x.size, &length, &sealed, &object); err != nil {
			return fault(err)
		}
		c.last = x.n
		if x.object = object.Bytes; object.Valid {
			length = maxObject
		}
		if x.off < 0 || x.off >= n.size || x.size <= 0 || x.size > maxRun || x.size > length && sealed == nil {
			found = append(found, fmt.Errorf("%w: extent %d of node %d", ErrDamaged, x.n, n.id))
			return nil
		}
		if sealed != nil {
			b, err := v.open(n, x, sealed)
			if err != nil {
				found = append(found, err)
				if length < x.size {
					return nil // a run hides nothing
				}
				b = broken(x.size)
			}
			x.data, x.run = b, int64(len(b)) < x.size
		}
		c.place(x.off, x.off+x.size, x)
		return nil
	}, selectExtents, n.id, inline)
	if err != nil {
		return err
	}
	if hole.live > 0 {
		found = append(found, fmt.Errorf("%w: node %d lacks %d bytes", ErrDamaged, n.id, hole.live))
	}
	if err := v.damage(found...); err != nil {
		return err
	}
	if hole.live > 0 {
		if last := c.pieces[len(c.pieces)-1]; last.x == hole {
			n.size = last.off // nothing vouches for the size
		}
	}
	c.truncate(n.size)
	n.content, n.loaded = c, true
	return nil
}

// readAt reads what is there now, synced or not.
func (v *volume) readAt(n *node, b []byte, off int64) (int, error) {
	for {
		size, missing, err := v.gather(n, b, off)
		if err != nil {
			return 0, err
		}
		b = b[:size]
		if len(missing) > 0 {
			if err := v.fetch(n, b, off, missing); err != nil {
				return 0, err
			}
		}
		if n.hides(missing) { // another goroutine overwrote it meanwhile
			continue
		}
		for x, p := range missing {
			if err := v.damage(fmt.Errorf("%w: extent %d of node %d is missing", ErrDamaged, x.n, n.id)); err != nil {
				return 0, err
			}
			for _, p := range p {
				copyPiece(b, off, p, broken(x.size))
			}
		}
		if len(b) == 0 {
			return 0, io.EOF
		}
		return len(b), nil
	}
}

// hides reports whether an extent does not show any more. Only then may its row be gone.
func (n *node) hides(extents map[*extent][]piece) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for x := range extents {
		if x.live == 0 {
			return true
		}
	}
	return false
}

// gather copies what is in memory, and returns what is not.
func (v *volume) gather(n *node, b []byte, off int64) (size int, missing map[*extent][]piece, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := v.load(n); err != nil {
		return 0, nil, err
	}
	c := &n.content
	end := min(c.size(), off+int64(len(b)))
	for i := c.at(off); i < len(c.pieces) && c.pieces[i].off < end; i++ {
		p := c.pieces[i]
		p.off, p.end = max(p.off, off), min(p.end, end)
		data := p.x.data
		if kept := p.x.kept.Load(); data == nil && kept != nil {
			data = *kept
		}
		if data != nil {
			copyPiece(b, off, p, data)
			continue
		}
		if missing == nil {
			missing = map[*extent][]piece{}
		}
		missing[p.x] = append(missing[p.x], p)
	}
	return int(max(end-off, 0)), missing, nil
}

// fetch reads extents and takes those that were there out of missing.
func (v *volume) fetch(n *node, b []byte, off int64, missing map[*extent][]piece) error {
	if err := v.download(n, b, off, missing); err != nil || len(missing) == 0 {
		return err
	}
	byNumber := make(map[int64]*extent, len(missing))
	numbers := make([]int64, 0, len(missing))
	for x := range missing {
		byNumber[x.n] = x
		numbers = append(numbers, x.n)
	}
	query, args := selectData, []any{n.id, numbers}
	if first, last := slices.Min(numbers), slices.Max(numbers); last-first < 2*int64(len(numbers)) { // one scan, not many probes
		query, args = selectRun, []any{n.id, first, last}
	}
	var found []error
	err := v.read(func(rows pgx.Rows) error {
		var number int64
		var sealed []byte
		if err := rows.Scan(&number, &sealed); err != nil {
			return fault(err)
		}
		x := byNumber[number]
		if x == nil {
			return nil
		}
		data, err := v.open(n, x, sealed)
		if err != nil {
			found = append(found, err)
			data = broken(x.size)
		}
		for _, p := range missing[x] {
			copyPiece(b, off, p, data)
		}
		delete(missing, x)
		v.recent.keep(x, data)
		return nil
	}, query, args...)
	if err != nil {
		return err
	}
	return v.damage(found...)
}

// flush sends what the database does not have, in one statement. With sync it returns when that and all earlier changes
// are durable, with times also the modification time.
//
// Crash order: before the commit the file is as the last flush left it, after it as it was when this flush began. There is
// nothing between. If the statement certainly changed nothing, a later flush sends the same again.
func (v *volume) flush(n *node, sync, times bool) error {
	n.flushing.Lock()
	defer n.flushing.Unlock()
	n.mu.Lock()
	sent, dead := n.content.take()
	times = n.changed && (times || n.told || n.resized)
	meta := times || n.resized || len(dead) > 0
	size, mtime, told := n.size, n.mtime, n.told
	if meta {
		n.resized, n.changed, n.told = false, false, false
	}
	n.mu.Unlock()
	if len(sent) == 0 && !meta {
		if sync {
			return v.sync()
		}
		return nil
	}
	err := v.send(n, sync, sent, meta, size, mtime, dead)
	if err == nil {
		v.tellOf(n)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.content.untake(sent, dead)
		if meta {
			n.resized, n.changed, n.told = true, true, told
		}
		return err
	}
	n.content.settle(sent)
	return nil
}

func (v *volume) send(n *node, sync bool, sent []*extent, meta bool, size, mtime int64, dead []int64) error {
	statement := unsynced
	if sync {
		statement = synced
	}
	numbers, offs, sizes, data := make([]int64, len(sent)), make([]int64, len(sent)), make([]int64, len(sent)), make([][]byte, len(sent))
	for i, x := range sent {
		sealed, err := v.sealer.Seal(x.data, extentAD(v.user, n.id, x))
		if err != nil {
			return err
		}
		numbers[i], offs[i], sizes[i], data[i] = x.n, x.off, x.size, sealed
	}
	objects, err := v.upload(sent, data)
	if err != nil {
		return err
	}
	args := []any{n.id, numbers, offs, sizes, data, objects}
	statement += insertExtents
	if meta {
		statement += updateNode
		args = append(args, size, mtime, dead)
	}
	return v.write(sync, statement+result, args...)
}
