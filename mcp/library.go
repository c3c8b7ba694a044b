package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/importer"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configure a server.
type Options struct {
	Write   bool   // offer remember and fork
	Project string // whose conversations count unless all are asked for: a folder, the label "project"; empty for all
	// Repository names the project, too: the label "repository".
	Repository string
	Asking     string // the id, or the external id, of the conversation that asks, which is left out; empty if it is not known
	Version    string // of the program
}

// library is the store behind the tools.
type library struct {
	Options
	store *ctxdir.Store

	mu    sync.Mutex
	index *search.Index
}

// asking is how long ago the project's latest conversation may have changed to count as the one that asks.
const asking = 10 * time.Minute

// origin is the label "tool" of contexts, and the tag of moments, that an agent made through the server.
const origin = "mcp"

// labelPrivate marks a context that no tool shows. Any value but "false" counts.
const labelPrivate = "private"

func isPrivate(labels map[string]string) bool {
	value, is := labels[labelPrivate]
	return is && value != "false"
}

// indexed returns the index, up to date. It tells the client how far it is, if that asked for it.
func (l *library) indexed(ctx context.Context, r *sdk.CallToolRequest) (*search.Index, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index == nil {
		x, err := search.Open(ctx, l.store)
		if err != nil {
			return nil, err
		}
		l.index = x
	}
	o := search.UpdateOptions{}
	if r != nil && r.Params.GetProgressToken() != nil {
		o.Progress = func(done, of int) {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // a client that is gone ends the call elsewhere
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(done), Total: float64(of), Message: "indexing conversations",
			})
		}
	}
	if _, err := l.index.Update(ctx, o); err != nil {
		return nil, err
	}
	return l.index, nil
}

func (l *library) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index == nil {
		return nil
	}
	return l.index.Close()
}

// scope is the contexts that an answer may come from.
type scope struct {
	contexts []uuid.UUID // of the project; nil for all
	except   []uuid.UUID
	asking   uuid.UUID // the one that asks, of those that are left out
}

// errNoProject says that the project has no conversations.
var errNoProject = errors.New("no earlier conversation of this project is stored; pass all=true to look at every project")

// scope returns the contexts of the project, or all, without private ones and the one that asks.
func (l *library) scope(ctx context.Context, all bool) (sc scope, err error) {
	all = all || l.Project == ""
	now := time.Now()
	for c, err := range l.store.List(ctx, ctxdir.ListOptions{Kind: "*"}) { // the most recently changed first
		if err != nil {
			return sc, err
		}
		in := l.isHere(c.Labels)
		switch {
		case isPrivate(c.Labels):
			sc.except = append(sc.except, c.ID)
		case c.Kind != "": // of moments and the like: not a conversation
		case l.isAsking(&c, in && sc.asking == uuid.Nil && now.Sub(c.UpdatedAt) < asking):
			sc.asking = c.ID
			sc.except = append(sc.except, c.ID)
		case in && !all:
			sc.contexts = append(sc.contexts, c.ID)
		}
	}
	if !all && len(sc.contexts) == 0 {
		return sc, errNoProject
	}
	return sc, nil
}

// isAsking reports whether a context is the conversation that asks. Without its id, it is the latest one of the project.
// Notes of agents ask nothing.
func (l *library) isAsking(c *ctxdir.Summary, latest bool) bool {
	if l.Asking != "" {
		return c.ExternalID == l.Asking || c.ID.String() == l.Asking
	}
	return latest && l.Project != "" && c.Labels["tool"] != origin
}

// isHere reports whether labels are those of a conversation of the project.
func (l *library) isHere(labels map[string]string) bool {
	project := labels[importer.LabelProject]
	return project == l.Project || strings.HasPrefix(project, strings.TrimSuffix(l.Project, "/")+"/") && l.Project != "" ||
		l.Repository != "" && labels[importer.LabelRepository] == l.Repository
}

// context calls f with the context that a client names: a private one is not there.
func (l *library) context(ctx context.Context, ref string, f func(c *ctxdir.Context) error) error {
	id, err := l.store.Resolve(ref)
	if err != nil {
		return fmt.Errorf("no context %q: take the id from recall, search or list", cut(ref, 100))
	}
	return l.store.Use(ctx, id, func(c *ctxdir.Context) error {
		if isPrivate(c.Metadata().Labels) {
			return fmt.Errorf("%w: no context %q: take the id from recall, search or list", fs.ErrNotExist, cut(ref, 100))
		}
		return f(c)
	})
}

// branchOf returns a branch, the active one if it has no name.
func branchOf(c *ctxdir.Context, name string) (*ctxdir.Branch, error) {
	if name == "" {
		return c.Active(), nil
	}
	return c.Branch(name)
}

// known leaves out contexts that an answer may not name.
func (sc *scope) known(id uuid.UUID) bool {
	return !slices.Contains(sc.except, id) && (sc.contexts == nil || slices.Contains(sc.contexts, id))
}
