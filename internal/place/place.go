// Package place tells whether a folder lies where the promises of docs/DESIGN.md hold: on which file system, with what room and limits, and
// what syncs, locks and times do there.
//
// What the system says is gathered by [Look] and judged by [Facts.Findings]; what it does is tried by [Try].
package place

import "slices"

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Info    Severity = "info"    // no harm, and good to know
	Warning Severity = "warning" // a promise does not hold here, or will not for long
	Error   Severity = "error"   // something does not work
)

// Kind says what a finding is about.
type Kind string

// The kinds of findings.
const (
	KindSystem     Kind = "system" // what cannot be told on this one
	KindFileSystem Kind = "file-system"
	KindMount      Kind = "mount"
	KindLayout     Kind = "layout" // parts of the store that lie elsewhere
	KindSpace      Kind = "space"
	KindInodes     Kind = "inodes"
	KindOpenFiles  Kind = "open-files"
	KindWatches    Kind = "watches"
	KindWrite      Kind = "write"
	KindSync       Kind = "sync"
	KindLock       Kind = "lock"
	KindClock      Kind = "clock"
	KindTimes      Kind = "file-times"
	KindNames      Kind = "names"
)

// Finding is one thing that was looked at.
type Finding struct {
	Kind     Kind
	Severity Severity
	Detail   string
	Hint     string // what to do; may be empty
	Path     string // may be empty
}

// Facts are what the system tells of a folder's place. What is not known is zero.
type Facts struct {
	System     string // as Go calls it
	FileSystem string // as the kernel calls it
	Mount      string // the folder it is mounted on
	Device     string // as in mountinfo: MAJOR:MINOR
	Options    []string
	Size       uint64 // bytes
	Free       uint64 // bytes, for who is not root
	Inodes     uint64 // 0 where the file system makes as many as it needs
	FreeInodes uint64
	OpenFiles  uint64 // that a process may have
	Watches    uint64 // of inotify, for all processes of a user
	Instances  uint64 // likewise
}

// Findings judges the facts, for a store of so many contexts.
func (f Facts) Findings(contexts int) []Finding {
	if f.System != "linux" {
		return []Finding{{
			Kind: KindSystem, Severity: Info,
			Detail: "the promise against power cuts is given on Linux; file system, mount options, room and limits cannot be told on " + f.System,
		}}
	}
	return slices.Concat(f.fileSystem(), f.mount(), f.space(), f.inodes(), f.openFiles(), f.watches(contexts))
}
