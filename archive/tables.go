package archive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/google/uuid"
)

// tables is the content of the last frame of a pack. It takes 20 bytes per message and 48 per payload.
type tables struct {
	segments []segment
	ids      []idRow // of each row
	payloads []payload
	bytes    int64 // of the envelopes
}

// idRow is an id and the number of its row.
type idRow struct {
	id  uuid.UUID
	row uint32
}

// addRow adds the table data of the pack's next row.
func (t *tables) addRow(r *Row) {
	t.ids = append(t.ids, idRow{r.ID, uint32(len(t.ids))})
	t.bytes += r.Size
}

// write sorts the tables and writes the frame at an offset: directory, id table, payload table, footer.
func (t *tables) write(at int64, write func([]byte) error) (footer, error) {
	f := footer{
		messages: int64(len(t.ids)), segments: int64(len(t.segments)), payloads: int64(len(t.payloads)),
		bytes: t.bytes, tables: at,
	}
	directory, ids, payloads := f.layout()
	f.size = payloads.at + payloads.size() + footerSize
	if err := write(appendSkip(nil, kindTables, int(f.size-f.tables-skipHead))); err != nil {
		return f, err
	}
	slices.SortFunc(t.ids, func(a, b idRow) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.row, b.row))
	})
	slices.SortFunc(t.payloads, func(a, b payload) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	id := func(b []byte, i int64) []byte { return append(b, t.ids[i].id[:]...) }
	return f, errors.Join(
		directory.write(write, nil, func(b []byte, i int64) []byte { return t.segments[i].append(b) }),
		ids.write(write, id, func(b []byte, i int64) []byte { return appendIDEntry(b, &t.ids[i].id, t.ids[i].row) }),
		payloads.write(write, nil, func(b []byte, i int64) []byte { return t.payloads[i].append(b) }),
		write(f.append(nil)),
	)
}

// write writes the pages of a table. head appends the head of a page, entry appends an entry.
func (t *table) write(write func([]byte) error, head, entry func(b []byte, i int64) []byte) error {
	var b []byte
	for n := range t.pages() {
		at, _, entries := t.page(n)
		start := len(b)
		first := n * t.shape.each
		if head != nil {
			b = head(b, first)
		}
		for i := first; i < first+entries; i++ {
			b = entry(b, i)
		}
		b = binary.LittleEndian.AppendUint64(b, placedSum(b[start:], at))
		if len(b) >= FrameSize || n == t.pages()-1 {
			if err := write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return nil
}
