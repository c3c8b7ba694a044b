package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/ctxdir/ctxdir/internal/term"
	"github.com/ctxdir/ctxdir/search"
	"github.com/google/uuid"
	"github.com/rivo/uniseg"
)

// printHits prints hits for people, grouped by context.
func (a *app) printHits(s *ctxdir.Store, hits []search.Hit) error {
	paint, short := a.out.Colours(), shortIDsIn(s)
	for _, group := range grouped(len(hits), func(i int) uuid.UUID { return hits[i].Context }) {
		first := &hits[group[0]]
		if err := a.printf("%s\n", a.contextHead(paint, short, first.Context, first.Title, first.Labels)); err != nil {
			return err
		}
		for _, i := range group {
			if err := a.printHit(paint, i+1, &hits[i]); err != nil {
				return err
			}
		}
		if err := a.printf("\n"); err != nil {
			return err
		}
	}
	return nil
}

// snippetWidth is the width of a text behind a margin.
func (a *app) snippetWidth(margin int) int {
	return max(min(cmp.Or(a.out.Columns(), 100), 100)-margin, 20)
}

// contextHead is the line above the hits in a context: title, id and project.
func (a *app) contextHead(paint term.Painter, short shortIDs, id uuid.UUID, title string, labels map[string]string) string {
	brief, project := short.of(id), plain.OneLine(lastFolders(labels["project"]))
	room := cmp.Or(a.out.Columns(), 100) - len(brief) - 2
	if project != "" {
		room -= uniseg.StringWidth(project) + 2
	}
	title = plain.Shorten(cmp.Or(plain.OneLine(title), "(no title)"), max(room, term.MinWidth))
	head := paint.Paint(term.Bold, title) + "  " + paint.Paint(term.Dim, brief)
	if project != "" {
		head += "  " + paint.Paint(term.Purple, project)
	}
	return head
}

// printHit prints the number of a hit, where it is, and its snippet.
func (a *app) printHit(paint term.Painter, n int, h *search.Hit) error {
	branches := strings.Join(h.Branches, ", ")
	if branches == "" {
		branches = "removed"
	}
	number, role := fmt.Sprintf("%3d", n), cmp.Or(h.Role, "-")
	if h.Kind != "" { // such as a moment, and what it is
		role += " " + h.Type
	}
	err := a.printf("%s  %s  %s  %s  %s\n", paint.Paint(term.BoldBlue, number), paint.Paint(voiceStyle(h.Role), plain.OneLine(role)),
		h.At.Local().Format("2006-01-02 15:04"), plain.OneLine(branches), paint.Paint(term.Dim, fmt.Sprint("#", h.Position)))
	if err != nil {
		return err
	}
	for _, path := range h.Paths {
		if err := a.printf("     %s\n", paint.Paint(term.Yellow, plain.OneLine(path))); err != nil {
			return err
		}
	}
	for _, line := range term.BreakMarked(h.Snippet, h.Marks, a.snippetWidth(5)) {
		if err := a.printf("     %s\n", line.Paint(paint)); err != nil {
			return err
		}
	}
	return nil
}

// grouped returns the numbers of n things, grouped by context in the order of the first ones.
func grouped(n int, of func(i int) uuid.UUID) (groups [][]int) {
	at := map[uuid.UUID]int{}
	for i := range n {
		id := of(i)
		if _, ok := at[id]; !ok {
			at[id] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[id]] = append(groups[at[id]], i)
	}
	return groups
}
