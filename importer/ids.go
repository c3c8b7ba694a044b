package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/internal/message"
	"github.com/google/uuid"
)

// space is the UUIDv5 namespace of all derived ids. Another one would make every imported history a new one.
var space = uuid.MustParse("5f0c9a52-6a0b-5d3c-9a51-1a9c7d0e4b7f")

// ContextID returns the id of the context of a session of a tool, by the id that the tool gave it, imported or not.
func ContextID(f Format, session string) uuid.UUID {
	return uuid.NewSHA1(space, []byte(string(f)+"\x00session\x00"+session))
}

// openingID is the id of the context of a history without an id: its opening identifies it.
func openingID(f Format, opening []json.RawMessage) uuid.UUID {
	h := sha256.New()
	for _, o := range opening {
		h.Write(o)
		h.Write([]byte{'\n'})
	}
	return uuid.NewSHA1(space, append([]byte(string(f)+"\x00opening\x00"), h.Sum(nil)...))
}

// key is the hash of a string, for maps: ids in histories have any length.
type key [16]byte

func keyOf(s string) key {
	sum := sha256.Sum256([]byte(s))
	return key(sum[:16])
}

// ids assigns ids to the records of one history.
type ids struct {
	context uuid.UUID
	seen    map[uuid.UUID]int32
}

func newIDs(context uuid.UUID) *ids { return &ids{context, map[uuid.UUID]int32{}} }

// next returns the id of the next record. own is the record's id, "" if it has none. next keeps own if it is a UUID and
// new; otherwise origin preserves it. Repeats are numbered, so that every record is stored, and a longer state of the
// file has the same ids.
func (s *ids) next(own string, body []byte) (id uuid.UUID, origin string) {
	switch parsed, err := uuid.Parse(own); {
	case own == "" || len(own) > maxName:
		sum := sha256.Sum256(body)
		id, own = uuid.NewSHA1(s.context, append([]byte("body\x00"), sum[:]...)), ""
	case err == nil && len(own) == 36 && parsed != uuid.Nil:
		id = parsed
		if strings.ToLower(own) != own {
			origin = own
		}
	default:
		id, origin = uuid.NewSHA1(s.context, []byte("id\x00"+own)), own
	}
	first := id
	for n := s.seen[first]; ; n++ {
		if n > 0 {
			id, origin = message.DerivedID(first, "repeat "+strconv.Itoa(int(n))), own
		}
		if s.seen[id] == 0 {
			s.seen[id]++
			if n > 0 {
				s.seen[first] = n + 1
			}
			return id, origin
		}
	}
}

// short is a readable part of a hash, for names.
func short(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

func callKey(id string) key { return keyOf("call\x00" + id) }
