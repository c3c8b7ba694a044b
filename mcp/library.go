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
	// Asking is the conversation that asks, which is left out: its id, its external id, or that of the session in the tool from
	// which it is imported; empty if it is not known.
	Asking string

	Version string // of the program
	// Imported is closed when an import beside the server was through once: first answers wait for it, half a minute at most.
	// Nil for no import.
	Imported <-chan struct{}
}

// library is the store behind the tools.
type library struct {
	Options
	store    *ctxdir.Store
	sessions []uuid.UUID // that Asking may be, one for each tool

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
	tell := func(int, int, string) {}
	if r != nil && r.Params.GetProgressToken() != nil {
		tell = func(done, of int, what string) {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ // a client that is gone ends the call elsewhere
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(done), Total: float64(of), Message: what,
			})
		}
	}
	if err := l.imported(ctx, tell); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index == nil {
		x, err := search.Open(ctx, l.store)
		if err != nil {
			return nil, err
		}
		l.index = x
	}
	progress := func(done, of int) { tell(done, of, "indexing conversations") }
	if _, err := l.index.Update(ctx, search.UpdateOptions{Progress: progress}); err != nil {
		return nil, err
	}
	return l.index, nil
}

// patience is how long an answer waits for the import: less than clients wait for an answer.
const patience = 30 * time.Second

// imported waits until the import beside the server was through once.
func (l *library) imported(ctx context.Context, tell func(done, of int, what string)) error {
	select {
	case <-l.Imported:
		return nil
	default:
	}
	if l.Imported == nil {
		return nil
	}
	tell(0, 0, "importing conversations")
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-l.Imported:
	case <-late.C:
	case <-ctx.Done():
	}
	return ctx.Err()
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

// errNothing says that the store is empty.
var errNothing = errors.New("no conversation is stored yet: \"ctxtool import\" imports those of other tools, and " +
	"\"ctxtool mcp --follow\" does it by itself")

// nothing reports whether there is nothing to answer from, which is no failure of a tool.
func nothing(err error) bool { return errors.Is(err, errNoProject) || errors.Is(err, errNothing) }

// scope returns the contexts of the project, or all, without private ones and the one that asks.
func (l *library) scope(ctx context.Context, all bool) (sc scope, err error) {
	if err := l.imported(ctx, func(int, int, string) {}); err != nil {
		return sc, err
	}
	empty, looks := true, 0
	all = all || l.Project == ""
	now := time.Now()
	for c, err := range l.store.List(ctx, ctxdir.ListOptions{Kind: "*"}) { // the most recently changed first
		if err != nil {
			return sc, err
		}
		empty = false
		in := l.isHere(c.Labels)
		switch {
		case isPrivate(c.Labels):
			sc.except = append(sc.except, c.ID)
		case c.Kind != "": // of moments and the like: not a conversation
		case l.isAsking(&c, in && sc.asking == uuid.Nil && now.Sub(c.UpdatedAt) < asking && l.isNew(ctx, c.ID, now, &looks)):
			sc.asking = c.ID
			sc.except = append(sc.except, c.ID)
		case in && !all:
			sc.contexts = append(sc.contexts, c.ID)
		}
	}
	if empty {
		return sc, errNothing
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
		return c.ExternalID == l.Asking || c.ID.String() == l.Asking || slices.Contains(l.sessions, c.ID)
	}
	return latest && l.Project != "" && c.Labels["tool"] != origin
}

// isNew reports whether the last message of a context is new: an import writes old ones now. It looks at few contexts.
func (l *library) isNew(ctx context.Context, id uuid.UUID, now time.Time, looks *int) (is bool) {
	const most = 20
	if *looks++; *looks > most {
		return false
	}
	_ = l.store.Use(ctx, id, func(c *ctxdir.Context) error { // a context that is gone is not new
		end, err := c.Active().Len(ctx)
		if err != nil || end == 0 {
			is = err == nil
			return err
		}
		for m, err := range c.Active().Messages(ctx, end-1, end) {
			is = err == nil && (m.CreatedAt.IsZero() || now.Sub(m.CreatedAt) < asking)
		}
		return nil
	})
	return is
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
