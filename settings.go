package ctxdir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/archiving"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/storefile"
	"github.com/google/uuid"
)

// Settings are the settings of a store. They are in ctxdir.json, and apply to every program that uses the store.
type Settings struct {
	// TextThreshold is the length, in bytes, from which a text moves to a blob; see [Options]. A store that is
	// open keeps the threshold it was opened with.
	TextThreshold int64

	// ArchiveAfter and KeepLast let [Store.Collect] archive by itself: messages that were stored at least ArchiveAfter
	// ago and are not among the newest KeepLast messages of a branch. If one of them is 0, only the other counts; if
	// both are, nothing is archived.
	ArchiveAfter time.Duration
	KeepLast     int64

	// TrashGrace is how long removed branches, contexts and blobs can be restored; 0 means a week.
	TrashGrace time.Duration

	// CacheSize bounds the messages that an open store keeps in memory, in bytes, unless [Options].CacheSize says otherwise, and
	// the texts that package assemble keeps on disk; 0 means 64 MiB, and more than 1 GiB counts as 1 GiB.
	CacheSize int64

	// MaxTokens is the budget of a context that is assembled for a model; 0 means [DefaultMaxTokens].
	MaxTokens int64

	// StorageMode says who else may hold the conversations: [StorageLocal] or [StorageServer]. Empty means that nobody has
	// decided: what is told to leave the store does.
	StorageMode string

	// Modes are the storage modes of contexts and projects, where they are not StorageMode: see [Settings.ModeOf].
	Modes []Mode

	// Extraction says what extracts the essence of conversations: [ExtractLocal], [ExtractRemote] or [ExtractHybrid].
	// Empty means ExtractLocal.
	Extraction string

	// Remotes are other stores, by names, with which programs bring this one together: see package replica.
	Remotes []Remote
}

// Remote is another store.
type Remote struct {
	Name  string
	Peer  string            // where it is: a folder or a URL
	Store uuid.UUID         // its id, once it was reached
	Map   map[string]string // what absolute paths of its machine are on this one, by their beginnings
}

// Here returns what an absolute path of another machine is on this one, by the maps of the remotes: the longest beginning
// counts. A path that no map has stays as it is.
func (s *Settings) Here(path string) string {
	longest, here := "", path
	for _, r := range s.Remotes {
		for from, to := range r.Map {
			from = strings.TrimRight(from, `/\`)
			rest, ok := strings.CutPrefix(path, from)
			if !ok || len(from) <= len(longest) || rest != "" && rest[0] != '/' && rest[0] != '\\' {
				continue
			}
			if strings.HasPrefix(to, "/") {
				rest = strings.ReplaceAll(rest, `\`, "/")
			}
			longest, here = from, strings.TrimRight(to, `/\`)+rest
		}
	}
	return here
}

// DefaultMaxTokens is the budget of an assembled context where neither caller nor store gives one.
const DefaultMaxTokens = 8000

// Storage modes. In both, programs write to the folder of the store.
const (
	StorageLocal  = "local"  // nothing leaves this machine but what is asked for: summaries
	StorageServer = "server" // a server holds everything, too, and the folder may forget what the server confirmed
)

// Mode is the storage mode of a context, or of the contexts of a project.
type Mode struct {
	Context uuid.UUID // or
	Project string    // the label "project", or the beginning of it that ends before a slash
	Mode    string    // StorageLocal or StorageServer
}

// ModeOf returns the storage mode of a context with these labels. Its own mode counts before that of its project, of which
// the longest counts, and that before that of the store. It is empty if nobody has decided.
func (s *Settings) ModeOf(id uuid.UUID, labels map[string]string) string {
	mode, longest := s.StorageMode, -1
	project := labels["project"]
	for _, m := range s.Modes {
		switch {
		case m.Context == id && id != uuid.Nil:
			return m.Mode
		case m.Project != "" && len(m.Project) > longest && (in(project, m.Project) || in(s.Here(project), m.Project)):
			mode, longest = m.Mode, len(m.Project)
		}
	}
	return mode
}

// in reports whether a path is a folder, or in it.
func in(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], `/\\`) || strings.HasSuffix(folder, "/"))
}

// What extracts the essence of conversations: rules on this machine, a model behind an endpoint that the caller names, or
// the model, with the rules where it fails.
const (
	ExtractLocal  = "local"
	ExtractRemote = "remote"
	ExtractHybrid = "hybrid"
)

// Settings reads the settings of the store.
func (s *Store) Settings() (Settings, error) {
	e, err := s.e.ReadSettings()
	return settings(e), err
}

func settings(e engine.Settings) Settings {
	o, _ := archiving.FromSettings(e)
	s := Settings{
		TextThreshold: engine.DefaultTextThreshold, ArchiveAfter: o.StoredFor, KeepLast: o.KeepLast, TrashGrace: e.Grace(),
		CacheSize: max(e.CacheSize, 0), MaxTokens: max(e.MaxTokens, 0), StorageMode: e.StorageMode, Extraction: e.Extraction,
	}
	for _, m := range e.Modes {
		s.Modes = append(s.Modes, Mode(m))
	}
	for _, r := range e.Remotes {
		s.Remotes = append(s.Remotes, Remote(r))
	}
	if e.TextThreshold != nil {
		s.TextThreshold = *e.TextThreshold
	}
	return s
}

// Configure changes the settings of the store. Other programs may change them at the same time: change receives the
// current ones. An error of change is returned, and nothing changes. Times are rounded up to seconds. Configure fails
// with [ErrInvalid] if a number other than TextThreshold is negative, or if this version does not know a mode.
func (s *Store) Configure(ctx context.Context, change func(*Settings) error) error {
	return s.e.Configure(ctx, func(e *engine.Settings) error {
		now := settings(*e)
		threshold := now.TextThreshold
		if err := change(&now); err != nil {
			return err
		}
		if err := now.check(); err != nil {
			return fmt.Errorf("%w: %w", engine.ErrInvalid, err)
		}
		if now.TextThreshold != threshold {
			e.TextThreshold = &now.TextThreshold
		}
		e.ArchiveAfter, e.KeepLast, e.TrashGrace = seconds(now.ArchiveAfter), now.KeepLast, seconds(now.TrashGrace)
		e.CacheSize, e.MaxTokens, e.StorageMode, e.Extraction = now.CacheSize, now.MaxTokens, now.StorageMode, now.Extraction
		e.Modes, e.Remotes = nil, nil
		for _, m := range now.Modes {
			e.Modes = append(e.Modes, storefile.Mode(m))
		}
		for _, r := range now.Remotes {
			e.Remotes = append(e.Remotes, storefile.Remote(r))
		}
		return nil
	})
}

func (s *Settings) check() error {
	switch {
	case s.ArchiveAfter < 0 || s.KeepLast < 0 || s.TrashGrace < 0 || s.CacheSize < 0 || s.MaxTokens < 0:
		return errors.New("settings must not be negative")
	case slices.ContainsFunc(s.Remotes, func(r Remote) bool { return r.Name == "" || r.Peer == "" }):
		return errors.New("a remote needs a name and a peer")
	case !slices.Contains([]string{"", StorageLocal, StorageServer}, s.StorageMode):
		return fmt.Errorf("unknown storage mode %q; use %q or %q", s.StorageMode, StorageLocal, StorageServer)
	case slices.ContainsFunc(s.Modes, func(m Mode) bool {
		return (m.Context == uuid.Nil) == (m.Project == "") || m.Mode != StorageLocal && m.Mode != StorageServer
	}):
		return fmt.Errorf("a mode is that of a context or of a project, and %q or %q", StorageLocal, StorageServer)
	case !slices.Contains([]string{"", ExtractLocal, ExtractRemote, ExtractHybrid}, s.Extraction):
		return fmt.Errorf("unknown extraction %q; use %q, %q or %q", s.Extraction, ExtractLocal, ExtractRemote, ExtractHybrid)
	}
	return nil
}

// seconds rounds a time up to seconds.
func seconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}
