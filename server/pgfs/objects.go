package pgfs

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ctxdir/ctxdir/server/bucket"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sync/errgroup"
)

const (
	minObject   = 32 << 10 // of sealed content, in bytes: less stays in the database
	maxOverhead = 1 << 10  // of sealed content over its data, in bytes
	maxRequests = 8        // at once, for one write or read
)

// errStore stands for what failed at an object store: users may see it, and are not told its address. Whoever runs the server
// hears of it from [bucket.Objects].Failed.
var errStore = errors.New("the object store failed")

var errNoObjects = errors.New("content is in an object store, which this server was started without")

// upload puts sealed extents into the object store if they are large. It returns what the rows have instead: the names of
// the objects, and no data where there is an object.
//
// Crash order: the store has confirmed an object before the row that names it is sent. A crash between leaves an object
// without a row, as does a row that is not committed: [Sweep] removes it. A name is used once.
func (v *volume) upload(sent []*extent, data [][]byte) ([]pgtype.UUID, error) {
	names := make([]pgtype.UUID, len(sent))
	if v.objects == nil {
		return names, nil
	}
	var g errgroup.Group
	g.SetLimit(maxRequests)
	for i, x := range sent {
		x.object = uuid.Nil
		if len(data[i]) < minObject {
			continue
		}
		x.object = uuid.New()
		names[i] = pgtype.UUID{Bytes: x.object, Valid: true}
		g.Go(func() error {
			ctx, done := v.context()
			defer done()
			err := v.objects.Put(ctx, x.object, data[i])
			data[i] = []byte{}
			return err
		})
	}
	if g.Wait() != nil {
		return nil, fault(errStore)
	}
	return names, nil
}

// download reads extents that are objects, and takes them out of missing. A missing object is damage, and one that does not
// open, too: it is not kept in memory, since somebody may bring it back.
func (v *volume) download(n *node, b []byte, off int64, missing map[*extent][]piece) error {
	var g errgroup.Group
	g.SetLimit(maxRequests)
	var mu sync.Mutex
	for x, pieces := range missing {
		if x.object == uuid.Nil {
			continue
		}
		delete(missing, x)
		g.Go(func() error {
			data, err := v.object(n, x)
			if errors.Is(err, ErrDamaged) {
				mu.Lock()
				err = v.damage(err)
				mu.Unlock()
				if err != nil {
					return err
				}
				data = broken(x.size)
			} else if err != nil {
				return err
			} else {
				v.recent.keep(x, data)
			}
			for _, p := range pieces {
				copyPiece(b, off, p, data)
			}
			return nil
		})
	}
	return g.Wait()
}

// object reads an extent that is an object.
func (v *volume) object(n *node, x *extent) ([]byte, error) {
	if v.objects == nil {
		return nil, fault(errNoObjects)
	}
	ctx, done := v.context()
	defer done()
	sealed, err := v.objects.Get(ctx, x.object, int(x.size)+maxOverhead)
	switch {
	case errors.Is(err, bucket.ErrMissing), errors.Is(err, bucket.ErrTooLarge):
		return nil, fmt.Errorf("%w: extent %d of node %d: object %s: %w", ErrDamaged, x.n, n.id, x.object, err)
	case err != nil:
		return nil, fault(errStore)
	}
	return v.open(n, x, sealed)
}
