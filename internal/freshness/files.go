package freshness

import (
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// FileState is the state of a file.
type FileState struct {
	Number uint64 `json:"n"`
	Size   int64  `json:"size"`
	At     int64  `json:"at"` // modification time, nanoseconds since 1970
}

// FilesOf returns the current state of a context's files. ok is false when one is missing.
func FilesOf(s *engine.Store, id uuid.UUID, log string) (files [3]FileState, ok bool) {
	infos, err := vfs.LstatIn(s.FS, id.String(), ".", ctxfolder.MetadataFile, log)
	if err != nil {
		return files, false
	}
	for i, info := range infos {
		if info == nil || (i == 0) != info.IsDir() || i > 0 && !info.Mode().IsRegular() {
			return files, false
		}
		files[i] = FileState{vfs.Number(info), info.Size(), info.ModTime().UnixNano()}
	}
	return files, true
}

// TimeResolution is the age from which the time of a change distinguishes it from a later one, on the coarsest clock of
// a file system.
const TimeResolution = 2 * time.Second

// fineResolution is TimeResolution for a time with a fraction of a millisecond, which comes from a clock that ticks every
// 10 ms at least.
const fineResolution = 100 * time.Millisecond

// ResolutionOf returns the age from which a time, in nanoseconds since 1970, distinguishes a change from a later one.
func ResolutionOf(at int64) time.Duration {
	if at%int64(time.Millisecond) != 0 {
		return fineResolution
	}
	return TimeResolution
}
