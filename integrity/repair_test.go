package integrity_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/integrity"
	"github.com/ctxdir/ctxdir/internal/checking"
	"github.com/google/uuid"
)

const (
	bad  = integrity.SeverityError
	warn = integrity.SeverityWarning
	info = integrity.SeverityInfo
)

// damage is a damage of the table. bare is how many messages it costs without files of messages: -1 for a damage of these
// files.
type damage struct {
	name     string
	do       func(p *patient)
	kind     integrity.Kind
	severity integrity.Severity
	bare     int
}

// garble makes the text of the n-th message of main in a file another one of the same length.
func garble(p *patient, path string, n int) {
	id := p.ids["main"][n].String()
	p.change(path, false, func(b []byte) []byte {
		at := bytes.Index(b, []byte(`"id":"`+id))
		if at < 0 {
			p.Fatalf("%s does not have message %d", path, n)
		}
		at += bytes.Index(b[at:], []byte(`"content":`)) + 12
		b[at] ^= 1
		return b
	})
}

// damages of any patient, with files or without.
var damages = []damage{
	{"metadata.json missing", func(p *patient) { check(p.T, os.Remove(p.path("metadata.json"))) }, integrity.KindMetadata, warn, 0},
	{"metadata.json torn", func(p *patient) {
		p.change(p.path("metadata.json"), false, func(b []byte) []byte { return b[:20] })
	}, integrity.KindMetadata, warn, 0},
	{"metadata.json is a folder", func(p *patient) {
		check(p.T, os.Remove(p.path("metadata.json")), os.Mkdir(p.path("metadata.json"), 0o700))
	}, integrity.KindMetadata, warn, 0},
	{"metadata.json edited", func(p *patient) {
		p.change(p.path("metadata.json"), false, replacing(`"patient"`, `"edited"`))
	}, integrity.KindMetadata, info, 0},

	{"first segment missing", func(p *patient) { check(p.T, os.Remove(p.segment(0))) }, integrity.KindSegment, bad, 16 + 12 + 3},
	{"footer of the first segment damaged", func(p *patient) {
		p.change(p.segment(0), false, func(b []byte) []byte { b[len(b)-12] ^= 1; return b })
	}, integrity.KindSegment, bad, 0},
	{"end of the first segment damaged", func(p *patient) { // the state, the tables and the footer
		p.change(p.segment(0), false, func(b []byte) []byte {
			at := bytes.Index(b, []byte(`{"lines":[`))
			copy(b[at:], bytes.Repeat([]byte("#"), len(b)-at))
			return b
		})
	}, integrity.KindSegment, bad, 0},
	{"message in a segment damaged", func(p *patient) { garble(p, p.segment(0), 13) }, integrity.KindSegment, warn, 1},
	{"segment truncated", func(p *patient) {
		p.change(p.segment(0), false, func(b []byte) []byte { return b[:len(b)/2] })
	}, integrity.KindSegment, bad, -2},
	{"segment of zeros", func(p *patient) {
		p.change(p.segment(0), false, func(b []byte) []byte { return make([]byte, len(b)) })
	}, integrity.KindSegment, bad, 16 + 12 + 3},
	{"folder of segments is a file", func(p *patient) {
		check(p.T, os.Rename(p.path("segments"), filepath.Join(p.root, "was")), os.WriteFile(p.path("segments"), nil, 0o600))
	}, integrity.KindFolder, bad, -2},

	{"log of another history", func(p *patient) {
		other := newPatient(p.T, state{true, true})
		b, err := os.ReadFile(other.newestLog())
		check(p.T, err, os.WriteFile(p.path("log-12345678-2.jsonl"), b, 0o600))
	}, integrity.KindLog, warn, 0},
	{"segment of another history", func(p *patient) {
		b, err := os.ReadFile(p.segment(0))
		check(p.T, err, os.WriteFile(p.path("segments", "3-9-12345678.zst"), b, 0o600))
	}, integrity.KindSegment, warn, 0},
	{"erasing.json damaged", func(p *patient) {
		check(p.T, os.WriteFile(p.path("erasing.json"), []byte(`{"ctxdir":"erasing/1","messages":[],"blobs":["../../x"]}`), 0o600))
	}, integrity.KindErasing, warn, 0},
	{"index.json edited", func(p *patient) {
		p.change(p.path("index.json"), false, replacing(`"seq": `, `"seq": 1`))
	}, integrity.KindIndex, warn, 0},
}

// logDamages are those of a patient whose newest messages are in a log.
var logDamages = []damage{
	{"record damaged", func(p *patient) { garble(p, p.newestLog(), 18) }, integrity.KindLog, bad, 1},
	{"last record damaged", func(p *patient) {
		p.change(p.newestLog(), false, func(b []byte) []byte { b[bytes.LastIndex(b, []byte(`"stored_at":"`))+20] ^= 1; return b })
	}, integrity.KindLog, bad, -2},
	{"several records damaged", func(p *patient) {
		for n := 17; n < 20; n++ {
			garble(p, p.newestLog(), n)
		}
	}, integrity.KindLog, bad, 3},
	{"log truncated", func(p *patient) {
		p.change(p.newestLog(), false, func(b []byte) []byte { return b[:bytes.Index(b, []byte("short 21"))] })
	}, integrity.KindLog, bad, -2},
	{"begin record damaged", func(p *patient) {
		p.change(p.newestLog(), false, func(b []byte) []byte { b[300] ^= 1; return b })
	}, integrity.KindLog, bad, 0},
	{"begin record and first message damaged", func(p *patient) {
		p.change(p.newestLog(), false, func(b []byte) []byte { b[300] ^= 1; return b })
		garble(p, p.newestLog(), 16)
	}, integrity.KindLog, bad, 1},
	{"log missing", func(p *patient) { check(p.T, os.Remove(p.newestLog())) }, integrity.KindLog, bad, -2},
	{"log emptied", func(p *patient) { check(p.T, os.Truncate(p.newestLog(), 0)) }, integrity.KindLog, bad, -2},
	{"log of zeros", func(p *patient) {
		p.change(p.newestLog(), false, func(b []byte) []byte { return make([]byte, len(b)) })
	}, integrity.KindLog, bad, -2},
	{"log of other bytes", func(p *patient) {
		p.change(p.newestLog(), false, func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) })
	}, integrity.KindLog, bad, -2},
	{"log and first segment damaged", func(p *patient) {
		garble(p, p.newestLog(), 18)
		garble(p, p.segment(0), 13)
	}, integrity.KindLog, bad, 2},
	{"log and metadata.json damaged", func(p *patient) {
		garble(p, p.newestLog(), 18)
		check(p.T, os.Remove(p.path("metadata.json")))
	}, integrity.KindLog, bad, 1},
}

// viewDamages are those of the files of messages.
var viewDamages = []damage{
	{"view missing", func(p *patient) { check(p.T, os.Remove(p.view(5))) }, integrity.KindMissing, warn, -1},
	{"view empty", func(p *patient) { check(p.T, os.Truncate(p.view(5), 0)) }, integrity.KindDamaged, warn, -1},
	{"view of zeros", func(p *patient) {
		p.change(p.view(5), false, func(b []byte) []byte { return make([]byte, len(b)) })
	}, integrity.KindDamaged, warn, -1},
	{"view torn", func(p *patient) {
		p.change(p.view(5), false, func(b []byte) []byte { return b[:len(b)/2] })
	}, integrity.KindDamaged, warn, -1},
	{"bit of a view flipped", func(p *patient) {
		p.change(p.view(6), true, replacing("short", "shost"))
	}, integrity.KindDamaged, warn, -1},
	{"view is a folder", func(p *patient) {
		check(p.T, os.Remove(p.view(5)), os.MkdirAll(filepath.Join(p.view(5), "x"), 0o700))
	}, integrity.KindDamaged, warn, -1},
	{"view is a link", func(p *patient) {
		check(p.T, os.Remove(p.view(5)), os.Symlink("/etc/hostname", p.view(5)))
	}, integrity.KindDamaged, warn, -1},
	{"view of an earlier version", func(p *patient) {
		p.change(p.view(6), false, func(b []byte) []byte {
			at := bytes.Index(b, []byte(`"stored_at":"`)) + len(`"stored_at":"`)
			b[at+3]-- // a year earlier
			return b
		})
	}, integrity.KindDamaged, warn, -1},
	{"two views under each other's names", func(p *patient) {
		a, b, c := p.view(6), p.view(7), filepath.Join(p.root, "c")
		check(p.T, os.Rename(a, c), os.Rename(b, a), os.Rename(c, b))
	}, integrity.KindDamaged, warn, -1},
	{"view in another folder", func(p *patient) {
		check(p.T, os.Rename(p.view(6), p.path("messages", "branch-alt", filepath.Base(p.view(6)))))
	}, integrity.KindMisplaced, warn, -1},
	{"view in messages itself", func(p *patient) {
		check(p.T, os.Rename(p.view(6), p.path("messages", filepath.Base(p.view(6)))))
	}, integrity.KindMisplaced, warn, -1},
	{"view copied", func(p *patient) {
		b, err := os.ReadFile(p.view(6))
		check(p.T, err, os.WriteFile(p.path("messages", "branch-alt", filepath.Base(p.view(6))), b, 0o600))
	}, integrity.KindDuplicate, warn, -1},
	{"folder missing", func(p *patient) {
		check(p.T, os.RemoveAll(p.path("messages", "branch-main")))
	}, integrity.KindMissing, warn, -1},
	{"folder renamed", func(p *patient) {
		check(p.T, os.Rename(p.path("messages", "branch-main"), p.path("messages", "branch-x")))
	}, integrity.KindMisplaced, warn, -1},
	{"folder is a file", func(p *patient) {
		check(p.T, os.RemoveAll(p.path("messages", "branch-main")), os.WriteFile(p.path("messages", "branch-main"), nil, 0o600))
	}, integrity.KindFolder, warn, -1},
	{"folder is a link", func(p *patient) {
		check(p.T, os.RemoveAll(p.path("messages", "branch-main")), os.Symlink("/etc", p.path("messages", "branch-main")))
	}, integrity.KindFolder, warn, -1},
	{"messages is a file", func(p *patient) {
		check(p.T, os.RemoveAll(p.path("messages")), os.WriteFile(p.path("messages"), nil, 0o600))
	}, integrity.KindFolder, warn, -1},
	{"file of nobody", func(p *patient) {
		check(p.T, os.WriteFile(p.path("messages", "branch-main", uuid.NewString()+".json"), []byte("{}"), 0o600))
	}, integrity.KindUnknown, warn, -1},
	{"temporary file", func(p *patient) {
		path, old := p.path("messages", "branch-main", ".left"), time.Now().Add(-48*time.Hour)
		check(p.T, os.WriteFile(path, []byte("x"), 0o600), os.Chtimes(path, old, old))
	}, integrity.KindTemporary, info, -1},
	{"view and message in the segment damaged", func(p *patient) {
		garble(p, p.segment(0), 13)
		check(p.T, os.Truncate(p.view(13), 0))
	}, integrity.KindLost, bad, 1},
	{"view of a damaged message in another folder", func(p *patient) {
		garble(p, p.segment(0), 13)
		check(p.T, os.Rename(p.view(13), p.path("messages", "branch-alt", filepath.Base(p.view(13)))))
	}, integrity.KindMisplaced, warn, -1},
}

// TestRepair damages a context in each way of the tables.
func TestRepair(t *testing.T) {
	t.Parallel()
	heal := func(d damage, of state) {
		t.Run(d.name+", "+of.String(), func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, of)
			if !of.views { // without files at any time, nothing else is wrong
				p.archive()
			}
			d.do(p)
			lost := 0
			if !of.views || d.bare > 0 && d.kind == integrity.KindLost {
				lost = d.bare
			}
			if d.bare == -2 && !of.views {
				p.healSome(d.kind, d.severity)
				return
			}
			p.heal(d.kind, d.severity, lost, checking.Options{})
		})
	}
	for _, is := range states {
		for _, d := range damages {
			heal(d, is)
		}
		for _, d := range logDamages {
			if is.log {
				heal(d, is)
			}
		}
		for _, d := range viewDamages {
			if is.views {
				heal(d, is)
			}
		}
	}
}

// TestFound: a file that comes back after a repair took its message for lost is the message again.
func TestFound(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{true, false} {
		p := newPatient(t, state{true, log})
		raw, err := os.ReadFile(p.view(13))
		check(t, err, os.Remove(p.view(13)))
		garble(p, p.segment(0), 13)
		if _, left := p.repair(checking.Options{}); left != 1 || p.lost() != 1 {
			t.Errorf("log %v: %d problems remain, wanted a lost message", log, left)
		}
		p.only(p.check(), integrity.KindLost, warn, 1)
		check(t, os.WriteFile(p.view(13), raw, 0o600))
		p.only(p.check(), integrity.KindFound, warn, 1)
		p.heal(integrity.KindFound, warn, 0, checking.Options{})
	}
}

// TestFoundTwice: of several files of a lost position the newest counts.
func TestFoundTwice(t *testing.T) {
	t.Parallel()
	p := newPatient(t, state{true, true})
	raw, err := os.ReadFile(p.view(18))
	check(t, err)
	id := "00000000-0000-4000-8000-000000000001" // its file is the first that is found
	older := strings.NewReplacer(p.ids["main"][18].String(), id, "short 18", "other").Replace(string(raw))
	at := strings.Index(older, `"stored_at":"`) + len(`"stored_at":"`)
	older = older[:at+3] + "0" + older[at+4:]
	check(t, os.WriteFile(p.path("messages", "branch-main", id+".json"), []byte(older), 0o600))
	garble(p, p.newestLog(), 18)
	p.repair(checking.Options{})
	if n := p.lost(); n > 0 {
		t.Errorf("%d are lost", n)
	}
	p.only(p.check(), integrity.KindForeign, warn, 1)
}
