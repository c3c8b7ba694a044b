package pgfs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors that callers distinguish. After ErrTaken, ErrLost and ErrUnknown an FS refuses every further call with the same
// error, as if its disk had gone: only a new [Open] reads what is really there.
var (
	// ErrTaken means that another process has taken over the user.
	ErrTaken = errors.New("another process serves this user now")
	// ErrLost means that the database lost changes that were not synced: it restarted, or another server took its place.
	ErrLost = errors.New("the database lost changes that were not synced")
	// ErrUnknown means that the connection broke during a write. Whether it was committed is unknown.
	ErrUnknown = errors.New("whether the database committed a write is unknown")
	// ErrKey means that the master key does not open the keys in the database.
	ErrKey = errors.New("the master key does not fit this database")
	// ErrMaster means that the master key could not be asked: whether it fits is unknown.
	ErrMaster = errors.New("the master key cannot be used now")
	// ErrDamaged means that a row is missing, was moved, or differs from what was written.
	ErrDamaged = errors.New("damaged row")
)

// fault makes an error of the database one of the disk, so that the engine does not take it for damage.
func fault(err error) error {
	number := syscall.EIO
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "53100" { // disk_full
		number = syscall.ENOSPC
	}
	return fmt.Errorf("%w: %w", number, err)
}

// isAborted reports whether a failed statement has certainly changed nothing: it was never sent, or the server has rolled
// it back. A server that ends (FATAL) may have committed it first.
func isAborted(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.SeverityUnlocalized == "ERROR"
	}
	return pgconn.SafeToRetry(err)
}
