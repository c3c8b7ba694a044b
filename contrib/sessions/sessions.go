package sessions

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Key names a session.
type Key struct{ App, User, ID string }

// Service reads and writes the sessions of one framework. Several goroutines and processes may use the same store.
type Service struct {
	store  *ctxdir.Store
	tool   string
	branch string // empty for the active one
}

// New returns the service of a framework; tool is its name, the same in all its versions.
func New(store *ctxdir.Store, tool string) *Service { return &Service{store: store, tool: tool} }

// OnBranch returns a service that reads and writes a branch of each session instead of the active one. A session that it
// creates has this branch alone. Its Delete removes only the branch, and a session without another one.
func (s *Service) OnBranch(name string) *Service {
	return &Service{store: s.store, tool: s.tool, branch: name}
}

// Event is one event of a session.
type Event struct {
	ID   string // unique in the session: a second append of the same event does nothing
	Role string // user, assistant or tool
	Type string
	Time time.Time
	Body json.RawMessage // the framework's object
}

// externalID joins names to an id that no other names have.
func externalID(names ...string) string {
	for i := range names {
		names[i] = url.PathEscape(names[i])
	}
	return strings.Join(names, "/")
}

// namesOf is the reverse of externalID.
func namesOf(externalID string) (names []string, err error) {
	names = strings.Split(externalID, "/")
	for i := range names {
		if names[i], err = url.PathUnescape(names[i]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// ContextID returns the id of the context that holds a session of a framework.
func ContextID(tool string, k Key) uuid.UUID {
	return ctxdir.ContextID("", externalID(tool, k.App, k.User, k.ID))
}

func (s *Service) contextID(k Key) uuid.UUID { return ContextID(s.tool, k) }
