package replica

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/ctxdir/ctxdir/internal/vfs"
	"github.com/google/uuid"
)

// agreed is what both sides had of a context when they last agreed. It has no text.
type agreed struct {
	Local   string            `json:"local"` // commits
	Remote  string            `json:"remote"`
	Lines   []linePair        `json:"lines"`
	Members map[string]uint64 `json:"members"` // checksums: see members
	// Erased are all messages that are known to be erased. If one of them comes back from somewhere else, it is erased again.
	Erased []uuid.UUID `json:"erased,omitempty"`
	// Away says that the context was moved to the trash here because the peer has it: that is no removal.
	Away bool `json:"away,omitempty"`
}

// isPart reports whether both sides agree on some branches only: they have not agreed on the context yet, or not since the
// history of one of them began anew.
func (a *agreed) isPart() bool { return a.Local == "" && !a.Away }

// linePair says that the first Len messages of every branch through two lines are the same.
type linePair struct {
	Name   string    `json:"name,omitempty"` // of the branch that points at both; empty for lines that have descendants only
	Local  uuid.UUID `json:"local"`
	Remote uuid.UUID `json:"remote"`
	Len    int64     `json:"len"`
}

// shared returns how many messages two branches certainly have in common at their beginnings.
func (a *agreed) shared(l, r *Branch) (n int64) {
	if a == nil {
		return 0
	}
	for _, p := range a.Lines {
		n = max(n, min(p.Len, endOn(l, p.Local), endOn(r, p.Remote)))
	}
	return n
}

// endOn returns where the part of a line ends that a branch shows, 0 if it shows none.
func endOn(b *Branch, line uuid.UUID) int64 {
	for _, s := range b.Lines {
		if s.Line == line {
			return s.End
		}
	}
	return 0
}

// agreements are what a store and a peer had when they last agreed: a file of the store for each peer. A store without
// it is brought together all the same, but does not know then whether a branch or message is new on one side, or removed on
// the other one: it keeps both.
type agreements struct {
	disk vfs.FS // the folder of the store
	peer uuid.UUID
	all  map[uuid.UUID]*agreed
	was  []byte // the content of the file
}

// agreementsFolder has the files of agreements in the folder of a store.
const agreementsFolder = "replicas"

const (
	agreementsVersion = "replica/1"
	maxAgreements     = 256 << 20 // bytes
)

type agreementsFile struct {
	Version  string                `json:"ctxdir"`
	Store    uuid.UUID             `json:"store"` // the peer
	Contexts map[uuid.UUID]*agreed `json:"contexts"`
}

func (a *agreements) file() string { return agreementsFolder + "/" + a.peer.String() + ".json" }

// lockAgreements waits until no other run works with the agreements of a peer.
func lockAgreements(ctx context.Context, disk vfs.FS, peer uuid.UUID) (release func(), err error) {
	if err := disk.Mkdir("locks"); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	lock := disk.Lock("locks/replica-" + peer.String())
	if err := lock.Acquire(ctx); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// readAgreements reads what a store, in a folder, and a peer have agreed on. A missing or damaged file is empty.
func readAgreements(disk vfs.FS, peer uuid.UUID) *agreements {
	a := &agreements{disk: disk, peer: peer, all: map[uuid.UUID]*agreed{}}
	b, err := vfs.ReadRegular(disk, a.file(), maxAgreements)
	if err != nil {
		return a
	}
	sum, content, _ := bytes.Cut(b, []byte{'\n'})
	if is := sha256.Sum256(content); string(sum) != hex.EncodeToString(is[:]) {
		return a
	}
	var f agreementsFile
	if json.Unmarshal(content, &f) == nil && f.Version == agreementsVersion && f.Store == peer && f.Contexts != nil {
		a.all, a.was = f.Contexts, b
	}
	return a
}

// commits returns the commits of one side at which both last agreed.
func (a *agreements) commits(side func(*agreed) string) map[uuid.UUID]string {
	all := make(map[uuid.UUID]string, len(a.all))
	for id, x := range a.all {
		all[id] = side(x)
	}
	return all
}

// save replaces the file, if anything changed.
//
// Crash order: what the file says was agreed on is durable on both sides. Before, it says what was agreed on earlier: then the
// next run finds that both sides are the same.
func (a *agreements) save() error {
	content, err := json.Marshal(agreementsFile{agreementsVersion, a.peer, a.all})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	b := append(append([]byte(hex.EncodeToString(sum[:])), '\n'), content...)
	if bytes.Equal(a.was, b) || a.was == nil && len(a.all) == 0 {
		return nil
	}
	if err := a.disk.Mkdir(agreementsFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := a.disk.Replace(a.file(), b); err != nil {
		return err
	}
	a.was = b
	return nil
}
