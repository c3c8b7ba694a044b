package reference

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
)

// maxEnded bounds the processes of git that end early.
const maxEnded = 16

// search is the resolution of a batch of references.
type search struct {
	ctx    context.Context
	tree   *tree
	budget int64 // work that is left
	all    []Resolution

	asked   bool // whether there is a repository
	git     *git
	noGit   error
	stop    context.CancelFunc
	past    *objects
	pastErr error
	ended   int           // processes of git that ended early
	missing []*Resolution // whose file is gone

	was struct { // the file of the past that was read last
		name string
		c    *content
	}
	versions struct { // that were compared last
		old, now *content
		hunks    []hunk
	}
}

func (s *search) close() {
	if s.past != nil {
		_ = s.past.Close()
	}
	if s.stop != nil {
		s.stop()
	}
}

// byFile returns the references in an order in which each file is read once.
func (s *search) byFile() []int {
	order := make([]int, len(s.all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(s.all[a].File, s.all[b].File) })
	return order
}

// repository returns the repository of the workspace, nil without one. It asks git once.
func (s *search) repository() *git {
	if !s.asked {
		s.asked = true
		var ctx context.Context
		ctx, s.stop = context.WithTimeout(s.ctx, gitTime)
		s.git, s.noGit = openGit(ctx, s.tree.dir)
	}
	return s.git
}

// lookInPlace compares a reference with the file at its path.
func (s *search) lookInPlace(r *Resolution) {
	if err := r.Ref.Validate(); err != nil {
		r.Note = err.Error()
		return
	}
	c, err := s.tree.read(r.Ref.File)
	switch {
	case err == nil:
		s.compare(r, c)
	case errors.Is(err, errMissing), errors.Is(err, errFolder):
		s.missing = append(s.missing, r)
		if !errors.Is(err, errMissing) {
			r.note("%v", err)
		}
	default:
		r.note("the file cannot be read: %v", err)
	}
}

// compare sets what a file at r.File says about the lines.
func (s *search) compare(r *Resolution, c *content) {
	ref := &r.Ref
	r.Blob = c.blob(len(ref.Blob))
	if ref.Blob == r.Blob && c.has(ref.Lines) || ref.Lines.IsZero() && ref.Sum != "" && Sum(c.text) == ref.Sum {
		r.at(Found, c, ref.Lines)
		return
	}
	l, found := c.find(ref.Sum, ref.Lines, ref.Context, &s.budget)
	switch {
	case found && l == ref.Lines:
		r.at(Found, c, l)
		if ref.Blob != "" {
			r.note("other lines of the file changed")
		}
	case found:
		r.at(Shifted, c, l)
		r.note("lines %s are lines %s now", ref.Lines, l)
	case ref.Blob == "" && ref.Sum == "" && ref.Commit == "" && c.has(ref.Lines):
		r.at(Found, c, ref.Lines)
		r.note("the reference has nothing to compare the lines with")
	default:
		r.at(Modified, c, c.near(ref.Lines, ref.Context, &s.budget))
		if s.budget <= 0 {
			r.note("the search for the lines took too long")
		}
	}
}

// lookBack compares the lines that are gone with the file as the repository had it.
func (s *search) lookBack(r *Resolution) {
	if !r.gone || r.Ref.Validate() != nil {
		return
	}
	old := s.before(&r.Ref)
	if old != nil && old.has(r.Ref.Lines) && !old.binary() {
		r.Fallback = shown(old.lines(r.Ref.Lines))
	} else {
		r.Fallback = r.Ref.Context
	}
	if r.Status == NotFound {
		r.LastCommit, r.LastSeen = cmp.Or(r.LastCommit, r.Ref.Commit), r.Ref.Seen
		return
	}
	s.compareWith(r, old)
}

// compareWith sets the place of lines that changed. old is the file as it was, or nil.
func (s *search) compareWith(r *Resolution, old *content) {
	c, err := s.tree.read(r.File)
	if err != nil {
		return
	}
	ref := &r.Ref
	if old != nil && ref.Sum == "" && s.compareSum(r, c, Sum(old.lines(ref.Lines))) {
		return
	}
	if old != nil {
		l := c.follow(ref.Lines, s.difference(old, c))
		status := r.Status
		r.at(Modified, c, l)
		r.Status = status
	}
	what := "lines"
	if ref.Lines.IsZero() {
		what = "file"
	}
	r.note("the %s changed since", what)
	if hash := ref.Blob; hash != "" && hash != r.Blob {
		r.note("the hash was %.12s and is %.12s", hash, r.Blob)
	}
	if !c.has(ref.Lines) {
		r.note("the file has only %d lines now", c.count())
	}
	if old == nil {
		s.noteUnknown(r)
	}
}

// compareSum compares a reference without a sum again, now that the sum is known. It reports whether the lines are
// there.
func (s *search) compareSum(r *Resolution, c *content, sum string) bool {
	status, ref := r.Status, r.Ref
	r.Ref.Sum = sum
	s.compare(r, c)
	r.Ref = ref
	if status == Moved {
		r.Status = Moved
	}
	if !r.gone {
		r.Fallback = ""
	}
	return !r.gone
}

// difference compares two versions of a file. Large files are not compared.
func (s *search) difference(old, now *content) []hunk {
	const much = 2 << 20 // a comparison takes about a microsecond a line
	if v := &s.versions; v.old != old || v.now != now {
		v.old, v.now, v.hunks = old, now, nil
		if len(old.text)+len(now.text) <= much {
			v.hunks = hunksOf(old, now)
		}
	}
	return s.versions.hunks
}

// noteUnknown says why the lines as they were are not known.
func (s *search) noteUnknown(r *Resolution) {
	switch g := s.repository(); {
	case g == nil:
		r.note("%v", s.noGit)
	case s.pastErr != nil:
		r.note("git cannot read the file as it was: %v", s.pastErr)
	case r.Ref.Blob != "" || r.Ref.Commit != "":
		r.note("git does not have the file as it was%s", map[bool]string{true: ", in this shallow clone"}[g.shallow])
	}
}

// before returns the file of a reference as it was, nil if the repository does not have it.
func (s *search) before(r *Ref) *content {
	if r.Blob == "" && r.Commit == "" || s.repository() == nil || s.pastErr != nil {
		return nil
	}
	for _, name := range []string{r.Blob, inCommit(r.Commit, r.File)} {
		if name == "" || name != r.Blob && r.Commit == "" {
			continue
		}
		c, err := s.version(name)
		if err != nil {
			if s.pastErr = err; s.git.ctx.Err() != nil {
				s.pastErr = errors.New("git did not answer in time")
			}
			return nil
		}
		if c != nil && c.has(r.Lines) && (r.Sum == "" || Sum(c.lines(r.Lines)) == r.Sum || name == r.Blob) {
			return c
		}
	}
	return nil
}

// version returns a file of the past, nil if the repository does not have it.
func (s *search) version(name string) (c *content, err error) {
	if s.was.name == name {
		return s.was.c, nil
	}
	if s.past == nil {
		if s.past, err = s.git.objects(); err != nil {
			return nil, err
		}
	}
	c, _, err = s.past.read(name)
	if errors.Is(err, io.EOF) && s.git.ctx.Err() == nil && s.ended < maxEnded {
		// A partial clone lacks the file, and git ends because it may not fetch it.
		_ = s.past.Close()
		s.past, err = nil, nil
		s.ended++
	}
	if err == nil {
		s.was.name, s.was.c = name, c
	}
	return c, err
}
