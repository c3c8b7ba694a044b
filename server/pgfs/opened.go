package pgfs

import (
	"bytes"
	"fmt"
	"sync"
)

// open decrypts an extent: its data, or one byte if it is a run.
func (v *volume) open(n *node, x *extent, sealed []byte) ([]byte, error) {
	b, err := v.sealer.Open(sealed, extentAD(v.user, n.id, x))
	if err == nil && int64(len(b)) != x.size && len(b) != 1 {
		err = fmt.Errorf("%d bytes instead of %d", len(b), x.size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: extent %d of node %d: %w", ErrDamaged, x.n, n.id, err)
	}
	return b, nil
}

// damage tells of damaged rows, unless another process has taken the user over: rows that it changed are not damaged, and the error
// says so.
func (v *volume) damage(found ...error) error {
	if len(found) == 0 {
		return nil
	}
	ctx, done := v.context()
	defer done()
	if err := v.look(ctx); err != nil {
		return err
	}
	for _, err := range found {
		v.damaged(err)
	}
	return nil
}

// broken is what a damaged extent reads as. No record of the engine has such bytes, and no write that a crash tore leaves
// them. So the checksums of the engine find the damage, and its repair deals with it as with that of a disk.
func broken(size int64) []byte { return bytes.Repeat([]byte{0xff}, int(size)) }

// copyPiece copies a piece of an extent with this data into b, which begins at off.
func copyPiece(b []byte, off int64, p piece, data []byte) {
	to := b[p.off-off : p.end-off]
	if len(data) == 1 {
		for i := range to {
			to[i] = data[0]
		}
		return
	}
	copy(to, data[p.off-p.x.off:])
}

// maxRecent bounds the extents that were read last and stay in memory, in bytes, for each user.
const maxRecent = 1 << 20

// recent is the extents that were read last.
type recent struct {
	mu    sync.Mutex
	queue []*extent
	bytes int64
}

func (r *recent) keep(x *extent, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.kept.Swap(&data) != nil {
		return
	}
	r.queue, r.bytes = append(r.queue, x), r.bytes+x.size
	for r.bytes > maxRecent {
		oldest := r.queue[0]
		oldest.kept.Store(nil)
		r.queue, r.bytes = r.queue[1:], r.bytes-oldest.size
	}
}
