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
		Kind: KindWrite, Severity: Warning, Hint: "check the folder's owner and mount options",
		Detail: fmt.Sprintf("cannot create a file: %v; syncs, locks, file times and names were not checked", err),
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
		found = append(found, Finding{
			Kind: KindWrite, Severity: Error, Path: t.name, Detail: fmt.Sprintf("cannot remove a file: %v", err),
		})
	}
	return found
}

func (t *trial) write() Finding {
	if _, err := t.file.WriteAt(make([]byte, 4096), 0); err != nil {
		return Finding{Kind: KindWrite, Severity: Error, Detail: fmt.Sprintf("cannot write a file: %v", err)}
	}
	return Finding{Kind: KindWrite, Severity: OK, Detail: "files can be created and written"}
}

// sync tests the syncs of an append and of a seal. It cannot test whether the disk reports the truth.
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
	return Finding{Kind: KindSync, Severity: Error, Detail: fmt.Sprintf("cannot sync %s: %v; appends fail here", what, err), Hint: toDisk}
}

// maxOff is how far the time of a new file may differ from the clock: vfat has steps of two seconds.
const maxOff = 3 * time.Second

func (t *trial) clock() Finding {
	info, err := t.fs.Lstat(t.name)
	if err != nil {
		return Finding{Kind: KindClock, Severity: Error, Detail: fmt.Sprintf("cannot read a file's time: %v", err)}
	}
	early, late := t.at.Sub(info.ModTime()), time.Until(info.ModTime())
	if off := max(early, late); off > maxOff {
		return Finding{
			Kind: KindClock, Severity: Warning, Hint: "synchronise both clocks",
			Detail: fmt.Sprintf("a new file has the time %s, %v off: the grace periods of payloads depend on file times",
				info.ModTime().UTC().Format(time.RFC3339), off.Round(time.Second)),
		}
	}
	return Finding{Kind: KindClock, Severity: OK, Detail: "file times agree with the system's clock"}
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
			Detail:   fmt.Sprintf("cannot set a file's time: %v; every read of a message computes its checksum", err),
		}
	case !info.ModTime().Equal(want):
		return Finding{
			Kind: KindTimes, Severity: Warning, Hint: toDisk,
			Detail: fmt.Sprintf("a file's time is stored %v off: every read of a message computes its checksum",
				info.ModTime().Sub(want).Abs()),
		}
	}
	return Finding{Kind: KindTimes, Severity: OK, Detail: "file times are stored to the microsecond"}
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
		return wrong("cannot acquire a lock: %v", errors.Join(err, taken(ok)))
	}
	if ok, err := second.TryAcquire(); ok || err != nil {
		if err != nil {
			return wrong("cannot request a held lock: %v", err)
		}
		return wrong("two handles can hold one lock: processes would overwrite each other's data")
	}
	if err := first.Release(); err != nil {
		return wrong("cannot release a lock: %v", err)
	}
	if ok, err := second.TryAcquire(); !ok || err != nil {
		return wrong("cannot acquire a released lock: %v", errors.Join(err, taken(ok)))
	}
	return Finding{Kind: KindLock, Severity: OK, Detail: "a lock excludes others until its release"}
}

// taken explains a lock that was not granted if no error does.
func taken(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("another process holds it")
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
				Detail: fmt.Sprintf("the file system stores %q as %q: a check may not recognise the folders of such branches", t.name, e.Name()),
				Hint:   "name branches in ASCII",
			}
		}
	}
	if as == nil {
		return Finding{Kind: KindNames, Severity: OK, Detail: "names are stored as they are written"}
	}
	return Finding{
		Kind:     KindNames,
		Severity: Info,
		Detail:   fmt.Sprintf("names are the same %s; ctxdir keeps branches apart in any case", strings.Join(as, " and ")),
	}
}

func (t *trial) found(name string) bool {
	_, err := t.fs.Lstat(name)
	return err == nil
}
