package place

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

// TemporaryStart begins the name of the file that [Try] makes.
const TemporaryStart = ".doctor-"

// Try tests in a folder the operations that the engine relies on. It uses one temporary file and removes it.
func Try(dir string) []Finding {
	fsys, err := vfs.OS(dir)
	if err != nil {
		return untried(err)
	}
	defer fsys.Close()
	return try(fsys)
}

// untried reports that the checks could not run without a file.
func untried(err error) []Finding {
	return []Finding{{
		Kind: KindWrite, Severity: Warning, Hint: "check who owns the folder, and how it is mounted",
		Detail: fmt.Sprintf("nothing can be written here: %v; syncs, locks, file times and names were not tried", err),
	}}
}

// trial is one temporary file.
type trial struct {
	fs   vfs.FS
	name string
	file vfs.File
	at   time.Time // right before the file was made
}

// try chooses a name that reveals changes of case and of Unicode form: é is one character in it.
func try(fsys vfs.FS) []Finding {
	t := trial{fs: fsys, name: fmt.Sprintf("%sé-%08x", TemporaryStart, rand.Uint32()), at: time.Now()}
	var err error
	if t.file, err = fsys.OpenFile(t.name, os.O_RDWR|os.O_CREATE|os.O_EXCL); err != nil {
		return untried(err)
	}
	found := []Finding{t.write()}
	if found[0].Severity == OK {
		found = append(found, t.sync(), t.clock(), t.times())
	}
	found = append(found, t.lock(), t.names())
	t.file.Close()
	if err := fsys.Remove(t.name); err != nil {
		found = append(
			found,
			Finding{Kind: KindWrite, Severity: Error, Path: t.name, Detail: fmt.Sprintf("a file cannot be removed again: %v", err)},
		)
	}
	return found
}

func (t *trial) write() Finding {
	if _, err := t.file.WriteAt(make([]byte, 4096), 0); err != nil {
		return Finding{Kind: KindWrite, Severity: Error, Detail: fmt.Sprintf("a file cannot be written: %v", err)}
	}
	return Finding{Kind: KindWrite, Severity: OK, Detail: "a file can be made and written"}
}

// sync tests the syncs of an append and of a fold. It cannot test whether the disk reports the truth.
func (t *trial) sync() Finding {
	begun := time.Now()
	err := t.file.Datasync()
	took := time.Since(begun)
	if err == nil {
		err = t.file.Sync()
	}
	if err != nil {
		return unsynced("a file", err)
	}
	if err := t.fs.SyncDir("."); err != nil {
		return unsynced("a folder", err)
	}
	if err := t.fs.SyncAll(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return unsynced("the file system", err)
	}
	if runtime.GOOS == "windows" {
		return Finding{Kind: KindSync, Severity: Info, Detail: "files can be synced; folders have no sync here"}
	}
	return Finding{
		Kind:     KindSync,
		Severity: OK,
		Detail:   fmt.Sprintf("files and folders can be synced; an fdatasync took %v", took.Round(time.Microsecond)),
	}
}

func unsynced(what string, err error) Finding {
	return Finding{Kind: KindSync, Severity: Error, Detail: fmt.Sprintf("%s cannot be synced: %v: appends fail here", what, err), Hint: toDisk}
}

// mostOff is how far the time of a new file may differ from the clock: vfat has steps of two seconds.
const mostOff = 3 * time.Second

func (t *trial) clock() Finding {
	info, err := t.fs.Lstat(t.name)
	if err != nil {
		return Finding{Kind: KindClock, Severity: Error, Detail: fmt.Sprintf("a file's time cannot be read: %v", err)}
	}
	early, late := t.at.Sub(info.ModTime()), time.Until(info.ModTime())
	if off := max(early, late); off > mostOff {
		return Finding{
			Kind: KindClock, Severity: Warning, Hint: "set both clocks by the same source",
			Detail: fmt.Sprintf("a file made now has the time %s, %v off: grace periods of payloads go by file times",
				info.ModTime().UTC().Format(time.RFC3339), off.Round(time.Second)),
		}
	}
	return Finding{Kind: KindClock, Severity: OK, Detail: "file times are those of the system's clock"}
}

// times checks whether a file keeps the time that the engine sets: that of its commit, in microseconds.
func (t *trial) times() Finding {
	want := time.Date(2020, 2, 20, 20, 20, 21, 123456000, time.UTC)
	err := t.file.SetModTime(want)
	var info fs.FileInfo
	if err == nil {
		info, err = t.fs.Lstat(t.name)
	}
	switch {
	case err != nil:
		return Finding{
			Kind:     KindTimes,
			Severity: Warning,
			Detail:   fmt.Sprintf("a file's time cannot be set: %v: every message is summed each time it is read", err),
		}
	case !info.ModTime().Equal(want):
		return Finding{
			Kind: KindTimes, Severity: Warning, Hint: toDisk,
			Detail: fmt.Sprintf("a file keeps its time %v off: every message is summed each time it is read",
				info.ModTime().Sub(want).Abs()),
		}
	}
	return Finding{Kind: KindTimes, Severity: OK, Detail: "files keep their times to the microsecond"}
}

// lock takes a lock, and requests it as another process would: through its own handle.
func (t *trial) lock() Finding {
	first, second := t.fs.Lock(t.name), t.fs.Lock(t.name)
	defer first.Close()
	defer second.Close()
	wrong := func(format string, args ...any) Finding {
		return Finding{Kind: KindLock, Severity: Error, Hint: toDisk, Detail: fmt.Sprintf(format, args...)}
	}
	if ok, err := first.TryAcquire(); !ok || err != nil {
		return wrong("a lock cannot be taken: %v", errors.Join(err, taken(ok)))
	}
	if ok, err := second.TryAcquire(); ok || err != nil {
		if err != nil {
			return wrong("a lock that is held cannot be asked for: %v", err)
		}
		return wrong("two can hold one lock: two processes would write over each other")
	}
	if err := first.Release(); err != nil {
		return wrong("a lock cannot be given back: %v", err)
	}
	if ok, err := second.TryAcquire(); !ok || err != nil {
		return wrong("a lock that was given back cannot be taken: %v", errors.Join(err, taken(ok)))
	}
	return Finding{Kind: KindLock, Severity: OK, Detail: "a lock is refused to a second one while it is held, and free afterwards"}
}

// taken explains a lock that was not granted if no error does.
func taken(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("somebody holds it")
}

// names checks which other names find the file. None does harm: no file system considers two branch names equal.
func (t *trial) names() Finding {
	var as []string
	if t.found(strings.ToUpper(t.name)) {
		as = append(as, "in upper and lower case")
	}
	if t.found(strings.Replace(t.name, "é", "e\u0301", 1)) {
		as = append(as, "in any Unicode form")
	}
	for e, err := range t.fs.ReadDir(".") {
		if err == nil && e.Name() != t.name && strings.HasSuffix(e.Name(), t.name[len(TemporaryStart)+len("é"):]) {
			return Finding{
				Kind: KindNames, Severity: Warning,
				Detail: fmt.Sprintf("%q comes back as %q: a check may not recognise the folders of branches with such names", t.name, e.Name()),
				Hint:   "name branches in ASCII",
			}
		}
	}
	if as == nil {
		return Finding{Kind: KindNames, Severity: OK, Detail: "names are what they are written as"}
	}
	return Finding{
		Kind:     KindNames,
		Severity: Info,
		Detail:   fmt.Sprintf("a name is the same %s; branch names are kept apart whatever they are written as", strings.Join(as, " and ")),
	}
}

func (t *trial) found(name string) bool {
	_, err := t.fs.Lstat(name)
	return err == nil
}
