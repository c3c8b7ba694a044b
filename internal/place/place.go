// Package place checks whether the promises of docs/DESIGN.md hold for a folder: its file system, space and limits, and
// the behaviour of syncs, locks and times.
//
// [Examine] makes all checks. [Look] collects facts from the system, and [Facts.Findings] evaluates them. [Try] tries
// syncs, locks and file times, and checks the results.
package place

// Severity rates a finding.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Info    Severity = "info"    // harmless information
	Warning Severity = "warning" // a promise does not hold here, or soon will not
	Error   Severity = "error"   // something does not work
)

// Kind names the subject of a finding.
type Kind string

// The kinds of findings.
const (
	KindSystem     Kind = "system" // what this system does not report
	KindFileSystem Kind = "file-system"
	KindMount      Kind = "mount"
	KindLayout     Kind = "layout" // parts of the store on another file system
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
	KindStaging    Kind = "staging"
)

// Finding is the result of one check.
type Finding struct {
	Kind     Kind
	Severity Severity
	Detail   string
	Hint     string // the remedy; may be empty
	Path     string // may be empty
}

// Facts are the system's reports about a folder. Unknown ones are zero.
type Facts struct {
	System     string // Go's name of it
	FileSystem string // the kernel's name of it
	Mount      string // the mount point
	Device     string // as in mountinfo: MAJOR:MINOR
	Options    []string
	Size       uint64 // bytes
	Free       uint64 // bytes available to users other than root
	Inodes     uint64 // 0 if the file system makes as many as it needs
	FreeInodes uint64
	OpenFiles  uint64 // limit of a process
	Watches    uint64 // inotify's limit for all processes of a user
	Instances  uint64 // likewise
}
