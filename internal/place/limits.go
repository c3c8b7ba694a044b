package place

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// These bounds follow from the engine's needs: it makes a log longer in steps of up to 512 KiB, and seals it at
// 1 MiB. A message may have 256 MiB, and is a file.
const (
	leastSpace  = 16 << 20
	littleSpace = 512 << 20
	leastInodes = 100
	fewInodes   = 10_000

	fewOpenFiles = 256
	fewInstances = 16
)

func (f Facts) space() []Finding {
	if f.Size == 0 {
		return []Finding{{Kind: KindSpace, Severity: Info, Detail: "the file system does not report its free space"}}
	}
	x := Finding{Kind: KindSpace, Severity: OK, Detail: fmt.Sprintf("%s of %s free", humanize.IBytes(f.Free), humanize.IBytes(f.Size))}
	switch {
	case f.Free < leastSpace:
		x.Severity, x.Detail = Error, x.Detail+": too little for a journal"
	case f.Free < littleSpace:
		x.Severity, x.Detail = Warning, x.Detail+": large messages may not fit"
	}
	if x.Severity != OK {
		x.Hint = "free some space, for example with \"ctxtool trash empty\" or \"ctxtool archive\""
	}
	return []Finding{x}
}

func (f Facts) inodes() []Finding {
	if f.Inodes == 0 {
		return nil
	}
	x := Finding{Kind: KindInodes, Severity: OK, Detail: fmt.Sprintf("%s of %s free", count(f.FreeInodes), count(f.Inodes))}
	switch {
	case f.FreeInodes < leastInodes:
		x.Severity, x.Detail = Error, x.Detail+": too few for a new context"
	case f.FreeInodes < fewInodes:
		x.Severity, x.Detail = Warning, x.Detail+": every message is a file"
	}
	if x.Severity != OK {
		x.Hint = "\"ctxtool archive\" puts many messages into one file"
	}
	return []Finding{x}
}

func (f Facts) openFiles() []Finding {
	switch {
	case f.OpenFiles == 0:
		return nil
	case f.OpenFiles < fewOpenFiles:
		return []Finding{{
			Kind: KindOpenFiles, Severity: Warning, Hint: "raise it with \"ulimit -n 1024\"",
			Detail: fmt.Sprintf("a process may open %s files: too few for programs that work in many contexts", count(f.OpenFiles)),
		}}
	}
	return []Finding{{Kind: KindOpenFiles, Severity: OK, Detail: fmt.Sprintf("a process may open %s files", count(f.OpenFiles))}}
}

// watchesEach is the number of watches to follow a context: its folder, that of the messages, and each branch.
const watchesEach = 3

// watches compares the limits of inotify with the needs of following the whole store: watches for each context, and an
// instance for each following process.
func (f Facts) watches(contexts int) []Finding {
	if f.Watches == 0 {
		return nil
	}
	var found []Finding
	if f.Watches <= watchesEach*uint64(contexts) {
		found = append(found, Finding{
			Kind: KindWatches, Severity: Warning, Hint: "raise it with \"sysctl fs.inotify.max_user_watches\"",
			Detail: fmt.Sprintf("a user may have %s watches; following %s contexts takes %d for each, and one for each further branch; "+
				"the rest is polled every 0.2 s", count(f.Watches), count(uint64(contexts)), watchesEach),
		})
	}
	if f.Instances < fewInstances {
		found = append(found, Finding{
			Kind: KindWatches, Severity: Warning, Hint: "raise it with \"sysctl fs.inotify.max_user_instances\"",
			Detail: fmt.Sprintf("a user may have %s inotify instances, and each following process takes one", count(f.Instances)),
		})
	}
	if found == nil {
		found = []Finding{{
			Kind: KindWatches, Severity: OK,
			Detail: fmt.Sprintf("a user may have %s watches, in %s instances", count(f.Watches), count(f.Instances)),
		}}
	}
	return found
}

func count(n uint64) string { return humanize.Comma(int64(min(n, 1<<62))) }
