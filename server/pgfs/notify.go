package pgfs

import (
	"strings"
	"sync"

	"github.com/ctxdir/ctxdir/internal/vfs"
)

var _ vfs.Notifier = (*FS)(nil)

// hearers are told of changes. Its lock is taken last.
type hearers struct {
	mu  sync.Mutex
	all map[*hearer]bool
}

type hearer struct {
	below *node
	f     func(name string)
}

// Notify implements [vfs.Notifier]: one process owns a user, so every change of the files passes through it.
func (f *FS) Notify(tell func(name string)) (stop func()) {
	h, l := &hearer{f.root, tell}, &f.v.heard
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*hearer]bool{}
	}
	l.all[h] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, h)
	}
}

// tell tells of a change of an entry. The caller holds v.mu.
func (v *volume) tell(dir *node, name string) {
	v.heard.mu.Lock()
	defer v.heard.mu.Unlock()
	for h := range v.heard.all {
		if below, ok := pathTo(h.below, dir); ok {
			h.f(below + name)
		}
	}
}

// tellOf tells of a change of the content of a file.
func (v *volume) tellOf(n *node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !n.gone && n.up != nil {
		v.tell(n.up, n.name)
	}
}

// pathTo returns the path from a folder to another one below it, with a slash at its end; empty if they are the same.
func pathTo(top, dir *node) (path string, below bool) {
	var parts []string
	for ; dir != nil && dir != top; dir = dir.up {
		parts = append([]string{dir.name}, parts...)
	}
	if len(parts) > 0 {
		path = strings.Join(parts, "/") + "/"
	}
	return path, dir == top
}
