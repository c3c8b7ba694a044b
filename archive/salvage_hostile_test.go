package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/ctxdir/ctxdir/internal/vfs/crashfs"
	"github.com/google/uuid"
)

// TestSalvageOther salvages what is no pack of this version.
func TestSalvageOther(t *testing.T) {
	entries, payloads, file := small(t)
	foot := len(file) - footerSize
	later := bytes.Clone(file)
	later[len(file)-sumSize-1]++
	later = append(later[:foot], appendSum(bytes.Clone(later[foot:len(file)-sumSize]), 0)...)
	head := bytes.Clone(file)
	head[skipHead-1]++
	headAlone := bytes.Clone(head)
	headAlone[foot] ^= 1
	letter := bytes.Clone(headAlone)
	letter[skipHead-1] = 'x'
	magic := bytes.Clone(headAlone)
	magic[0]++
	for name, c := range map[string]struct {
		file    []byte
		version bool
		all     bool
	}{
		"empty": {}, "zeros": {file: make([]byte, 4096)}, "a byte": {file: []byte{1}}, "a head": {file: file[:skipHead]},
		"footer of version 2":                {file: later, version: true},
		"head of version 2":                  {file: headAlone, version: true},
		"head of version 2 alone":            {file: headAlone[:skipHead], version: true},
		"head of version 2, footer of 1":     {file: head, all: true},
		"head of no version, footer damaged": {file: letter, all: true},
		"no head, footer damaged":            {file: magic, all: true},
	} {
		disk := put(t, c.file)
		if c.version {
			if p, err := Salvage(disk, damagedName); !errors.Is(err, ErrVersion) || p != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		p, rows, _ := checkSalvaged(t, disk)
		if c.all {
			checkPack(t, p, entries, payloads)
		} else if len(rows) > 0 || p.Len() > 0 || p.PayloadCount() > 0 {
			t.Errorf("%s: %d messages, %d payloads", name, p.Len(), p.PayloadCount())
		}
		for range p.LookupID(uuid.Nil) {
			t.Errorf("%s: a message", name)
		}
	}
	disk := crashfs.New()
	if _, err := Salvage(disk, damagedName); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := disk.Mkdir(damagedName); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(disk, damagedName); err == nil {
		t.Error("a folder was opened")
	}
}

// TestSalvageFails: an error of reading is no damage.
func TestSalvageFails(t *testing.T) {
	_, _, file := small(t)
	broken := errors.New("input/output error")
	for k := 0; ; k++ {
		disk := put(t, file).(*crashfs.FS)
		n, open := 0, 0
		disk.Fail(func(op crashfs.Op) error {
			switch op.Kind {
			case crashfs.KindOpen:
				open++
			case crashfs.KindClose:
				open--
			}
			if n++; n > k {
				return broken
			}
			return nil
		})
		p, err := Salvage(disk, damagedName)
		if err == nil {
			if n > k || k < 10 {
				t.Fatalf("operation %d of %d fails: no error", k, n)
			}
			p.Close()
			return
		}
		if !errors.Is(err, broken) || errors.Is(err, ErrDamaged) || p != nil {
			t.Fatalf("operation %d: %v", k, err)
		}
		if k > 0 && open > 0 {
			t.Fatalf("operation %d: the file is open still", k)
		}
	}
}

// TestSalvageHostile salvages files that no writer makes: nothing is there twice, out of order, or more often than the
// file can hold it.
func TestSalvageHostile(t *testing.T) {
	entries, _, file := small(t)
	whole := open(t, put(t, file), damagedName)
	frames := func(order ...int64) []byte {
		b := bytes.Clone(file[:skipHead])
		for _, n := range order {
			s, _, err := whole.segment(n)
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, file[s.offset:s.offset+s.packed]...)
		}
		return b
	}
	groups, _ := whole.payloadEntries()
	group := file[groups[0].offset : groups[0].offset+groups[0].length]
	// Heads of groups that claim each other's bytes as names.
	var claims []byte
	for range 2000 {
		claims = append(appendSkip(claims, kindPayloads, 4+groupCount*groupEntry), 0, 16, 0, 0)
	}
	claims = append(claims, make([]byte, groupCount*groupEntry)...)
	first, _, _ := whole.segment(0)
	_, count, _ := whole.segment(2)
	rows := file[first.offset+first.packed : first.end()]
	// Two messages that no frame can hold.
	huge := appendRow(nil, &Row{Size: MaxMessage}, nil)
	huge = appendRow(huge, &Row{Size: MaxMessage, Position: 1}, &Row{})
	huge = append(appendSkip(nil, kindRows, len(huge)+sumSize), huge...)
	huge = binary.LittleEndian.AppendUint64(huge, placedSum(huge[8:], skipHead))
	for name, c := range map[string]struct {
		file           []byte
		rows, payloads int64
	}{
		"in order":       {frames(0, 1, 2), rowsBefore(t, whole, 3), 0},
		"no head":        {frames(0, 1, 2)[skipHead:], rowsBefore(t, whole, 3), 0},
		"out of order":   {frames(2, 0, 1), count, 0},
		"twice":          {frames(0, 0, 1, 1), rowsBefore(t, whole, 2), 0},
		"groups twice":   {slices.Concat(file[:skipHead], group, group), 0, groupLen(group)},
		"rows elsewhere": {slices.Concat(file[:skipHead], rows, rows), 0, 0},
		"rows in place":  {slices.Concat(make([]byte, first.offset+first.packed), rows), rowsBefore(t, whole, 1), 0},
		"claims":         {claims, 0, 0},
		"huge":           {slices.Concat(file[:skipHead], huge), 0, 0},
	} {
		p := salvagePack(t, put(t, c.file))
		if p.Len() != c.rows || p.PayloadCount() != c.payloads {
			t.Errorf("%s: %d messages, %d payloads, wanted %d, %d", name, p.Len(), p.PayloadCount(), c.rows, c.payloads)
		}
		readAll(t, p, entries, nil)
		for d := range p.Verify() {
			if !errors.Is(d.Err, ErrDamaged) {
				t.Errorf("%s: %v", name, d.Err)
			}
		}
	}
}

func rowsBefore(t tb, p *Pack, n int64) int64 {
	s, _, err := p.segment(n)
	if err != nil {
		t.Fatal(err)
	}
	return s.first
}

func groupLen(b []byte) int64 {
	g, _ := parseGroup(b)
	return int64(len(g.sums))
}
