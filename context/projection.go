package context

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir/internal/object"
	"github.com/ctxdir/ctxdir/internal/vfs"
)

// metadata.json is a projection of the metadata that the log commits. A person may edit it: the engine then takes
// the changes in, with the next write.

// Projection is the state of metadata.json, compared with the committed metadata.
type Projection int

// The states of metadata.json.
const (
	ProjectionCurrent  Projection = iota // the engine wrote it for the committed revision
	ProjectionStale                      // the engine wrote it for an earlier revision
	ProjectionAltered                    // somebody changed it, but nothing that counts
	ProjectionNewer                      // it is of a later revision, or nothing was committed
	ProjectionEdited                     // a person changed it
	ProjectionUnknown                    // it is of an earlier revision and was edited, and does not say which members: none count
	ProjectionUnusable                   // it is missing or damaged
)

// recognise returns the state of a metadata.json that the engine wrote for committed metadata, or for earlier metadata
// of the context: its check is right. Such a file needs no parser, since its members are on lines of their own.
func (m *Metadata) recognise(b []byte) (is Projection, ok bool) {
	at := bytes.LastIndex(b, []byte(`"`+checkMember+`"`))
	if m == nil || at < 0 || string(b[at:]) != checkEnd(b[:at]) {
		return is, false
	}
	member := func(key string) string {
		_, value, _ := bytes.Cut(b, []byte("\n  \""+key+"\": "))
		value, _, _ = bytes.Cut(value, []byte(",\n"))
		return string(value)
	}
	if member("ctxdir") != `"`+metadataVersion+`"` || member("id") != `"`+m.ID.String()+`"` {
		return is, false
	}
	switch revision, err := strconv.ParseInt(member("revision"), 10, 64); {
	case err != nil || revision > m.Revision:
		return is, false
	case revision < m.Revision:
		return ProjectionStale, true
	}
	return ProjectionCurrent, true
}

// Reconcile returns the metadata that counts, where a log committed one and metadata.json holds file. Of an edited
// file these members count: title, parent_id, labels, config, state, active_branch, the names, prompts and further
// members of branches, and unknown members. Only members that differ from the file as the engine wrote it are taken:
// the others may be older than the commits since.
func Reconcile(committed, file *Metadata) (*Metadata, Projection) {
	switch {
	case committed == nil:
		return file, ProjectionNewer
	case file.check && file.Revision == committed.Revision:
		return committed, ProjectionCurrent
	case file.check && file.Revision < committed.Revision:
		return committed, ProjectionStale
	case file.Revision > committed.Revision: // edited or not: the record of that revision is lost
		return file, ProjectionNewer
	}
	was := file.sums
	if was == nil && file.Revision == committed.Revision {
		sums := committed.memberSums()
		was = &sums
	}
	if was == nil {
		return committed, ProjectionUnknown
	}
	m := committed.withEdits(file, *was)
	if bytes.Equal(RawMetadata(m), RawMetadata(committed)) {
		return committed, ProjectionAltered
	}
	return m, ProjectionEdited
}

// withEdits returns m with the members of file whose sums differ from was, those of the file as it was written.
func (m *Metadata) withEdits(file *Metadata, was Object) *Metadata {
	now := file.memberSums()
	edited := func(key string) bool { return !bytes.Equal(now.Get(key), was.Get(key)) }
	c := m.Clone()
	if edited("title") {
		c.Title = file.Title
	}
	if edited("parent_id") {
		c.ParentID = file.ParentID
	}
	if edited("state") {
		c.State = object.Compact(file.State)
	}
	c.Config = objectWithEdits(m.Config, file.Config, objectIn(was, "config"))
	c.Labels = objectWithEdits(m.Labels, file.Labels, objectIn(was, "labels"))
	unknown := was
	for _, key := range summedMembers {
		unknown.Set(key, nil)
	}
	c.Extra = objectWithEdits(m.Extra, file.Extra, unknown)
	named, branches := c.Clone(), objectsIn(objectIn(was, "branches"))
	for i := range named.Branches {
		was, ok := branches[named.Branches[i].Line.String()]
		if !ok {
			continue // branches come and go by verbs only
		}
		named.Branches[i].edit(file, was, true)
		c.Branches[i].edit(file, was, false)
	}
	if edited("active_branch") {
		named.ActiveBranch = file.ActiveBranch
		if _, ok := c.Branch(file.ActiveBranch); ok {
			c.ActiveBranch = file.ActiveBranch
		}
	}
	if named.validate() == nil {
		return named
	}
	return c // without the names: two branches would have one
}

// edit takes over what file changes of the branch on this line.
func (b *Branch) edit(file *Metadata, was Object, name bool) {
	i := slices.IndexFunc(file.Branches, func(x Branch) bool { return x.Line == b.Line })
	if i < 0 {
		return
	}
	now := &file.Branches[i]
	sums := now.memberSums()
	edited := func(key string) bool { return !bytes.Equal(sums.Get(key), was.Get(key)) }
	if name && edited("name") {
		b.Name = now.Name
	}
	if edited("system_prompt") {
		b.SystemPrompt = object.Compact(now.SystemPrompt)
	}
	was.Set("name", nil)
	was.Set("system_prompt", nil)
	b.Extra = objectWithEdits(b.Extra, now.Extra, was)
}

// objectWithEdits returns the object with the members of file whose sums differ from was, and without those that file lacks.
func objectWithEdits(o, file, was Object) Object {
	for _, m := range file.Members() {
		if !bytes.Equal(valueSum(m.Value), was.Get(m.Key)) {
			o.Set(m.Key, object.Compact(m.Value))
		}
	}
	for _, m := range was.Members() {
		if file.Get(m.Key) == nil {
			o.Set(m.Key, nil)
		}
	}
	return o
}

func sameJSON(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || bytes.Equal(object.Compact(a), object.Compact(b))
}

// EffectiveMetadata returns what counts of the committed metadata, nil for none, and metadata.json: see [Reconcile]. The error
// of an unusable metadata.json comes with ProjectionUnusable.
func (d *Dir) EffectiveMetadata(committed *Metadata) (*Metadata, Projection, Stamp, error) {
	b, stamp, err := d.readMetadata()
	var file *Metadata
	if err == nil {
		if is, ok := committed.recognise(b); ok {
			return committed, is, stamp, nil
		}
		if file, err = d.parseMetadata(b); err != nil {
			stamp = Stamp{}
		}
	}
	switch {
	case err == nil:
		m, is := Reconcile(committed, file)
		return m, is, stamp, nil
	case errors.Is(err, ErrVersion):
		return nil, ProjectionUnusable, stamp, err
	}
	return committed, ProjectionUnusable, stamp, err
}

// errEditedMeanwhile reports that metadata.json is not the file that was looked at.
var errEditedMeanwhile = errors.New("metadata.json changed during the operation")

// ProjectMetadata replaces the metadata.json of a stamp by committed metadata. It syncs nothing, and fails if another
// file is there: a person may have edited it. The caller holds the lock.
//
// Crash order: the log has the metadata, durably. A crash leaves the old file, the new one, or a torn one, whose
// check does not match.
func (d *Dir) ProjectMetadata(m *Metadata, seen Stamp) (Stamp, error) {
	b, err := m.Encode()
	if err != nil {
		return Stamp{}, err
	}
	var stamp Stamp
	err = d.replaceView(MetadataFile, b, func(tmp string) error {
		if now := d.MetadataStamp(); now.info != nil && !now.Same(seen) {
			return errEditedMeanwhile
		}
		stamp = d.stampOf(tmp) // once it has the name, a person may edit it
		return nil
	})
	if err != nil {
		return Stamp{}, err
	}
	return stamp, nil
}

// ReplaceView replaces a file in the context's folder. It syncs nothing.
//
// Crash order: the file says what the log has. A crash leaves the old one, the new one, or a torn one.
func (d *Dir) ReplaceView(name string, data []byte) error {
	return d.replaceView(name, data, func(string) error { return nil })
}

func (d *Dir) replaceView(name string, data []byte, may func(tmp string) error) error {
	if err := d.MakeWay(name); err != nil {
		return err
	}
	tmp := "." + name + ".tmp"
	if err := d.FS.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := vfs.CreateFile(d.FS, tmp, data, time.Now())
	if err == nil {
		err = may(tmp)
	}
	if err == nil {
		err = d.FS.Rename(tmp, name)
	}
	if err != nil {
		_ = d.FS.Remove(tmp)
	}
	return err
}

// WriteMetadata is [Dir.ProjectMetadata], durably: no older file comes back. It is for replacing an edited file, which
// would count as an edit again, and for metadata that no log has. The caller holds the lock.
//
// Crash order: the rename replaces one whole file by another. The rename is durable only after the folder's fsync.
func (d *Dir) WriteMetadata(m *Metadata) (Stamp, error) {
	if err := m.validate(); err != nil {
		return Stamp{}, fmt.Errorf("%w: refused to write invalid metadata: %w", ErrMetadata, err)
	}
	b, err := m.Encode()
	if err != nil {
		return Stamp{}, err
	}
	if err := d.FS.Replace(MetadataFile, b); err != nil {
		return Stamp{}, err
	}
	if err := d.FS.SyncDir("."); err != nil {
		return Stamp{}, err
	}
	is, stamp, err := d.readMetadata()
	if err != nil || !bytes.Equal(is, b) { // a person edited it again: the next look reads it
		return Stamp{}, nil
	}
	return stamp, nil
}
