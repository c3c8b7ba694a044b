package reference

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

const (
	maxCommits = 32       // whose renames are looked for
	maxHashed  = 64 << 20 // bytes of files that git does not know, which are hashed
	maxAlike   = 16       // files of one name that are compared
)

// files are where a file may be that is not in its place.
type files struct {
	blobs  map[string][]string // by hash, of the index
	names  map[string][]string // by the last name of the path
	others []string            // that the index does not have
}

// lookElsewhere looks for files that are not in their place: the same file or, where git says so, a renamed one.
func (s *search) lookElsewhere() {
	if len(s.missing) == 0 {
		return
	}
	var f files
	if g := s.repository(); g != nil {
		f.blobs, f.names, f.others = g.tracked()
	} else {
		f.names, f.others = map[string][]string{}, s.tree.walk()
	}
	for _, name := range f.others {
		f.names[path.Base(name)] = append(f.names[path.Base(name)], name)
	}
	s.hashOthers(&f)
	renames := s.renames()
	for _, r := range s.missing {
		if s.ctx.Err() != nil {
			return
		}
		s.lookFor(r, &f, renames[r.Ref.Commit])
	}
	s.noteDeletions()
}

// hashOthers adds the hashes of the files that the index does not have, as far as references look for them.
func (s *search) hashOthers(f *files) {
	digits := map[int]bool{}
	for _, r := range s.missing {
		if r.Ref.Blob != "" {
			digits[len(r.Ref.Blob)] = true
		}
	}
	if f.blobs == nil {
		f.blobs = map[string][]string{}
	}
	left := maxHashed
	for _, name := range f.others {
		if len(digits) == 0 || left < 0 || s.ctx.Err() != nil {
			return
		}
		c, err := s.tree.read(name)
		if err != nil {
			continue
		}
		left -= len(c.text) + 4<<10
		for n := range digits {
			f.blobs[c.blob(n)] = append(f.blobs[c.blob(n)], name)
		}
	}
}

// renames asks git once for each commit of the missing references.
func (s *search) renames() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, r := range s.missing {
		commit := r.Ref.Commit
		if _, asked := all[commit]; asked || commit == "" || s.git == nil || len(all) == maxCommits {
			continue
		}
		all[commit], _ = s.git.renames(commit)
	}
	return all
}

// lookFor looks for a file that is not in its place.
func (s *search) lookFor(r *Resolution, f *files, renames map[string]string) {
	file := r.Ref.File
	same := f.blobs[r.Ref.Blob]
	for _, name := range same[:min(len(same), maxAlike)] {
		if c, err := s.tree.read(name); err == nil && r.Ref.Blob != "" && c.blob(len(r.Ref.Blob)) == r.Ref.Blob {
			s.moveTo(r, name, c)
			return
		}
	}
	if name := renames[file]; name != "" {
		if c, err := s.tree.read(name); err == nil {
			s.moveTo(r, name, c)
			return
		}
	}
	alike := slices.Clone(f.names[path.Base(file)])
	slices.SortStableFunc(alike, func(a, b string) int { return cmp.Compare(common(b, file), common(a, file)) })
	for _, name := range alike[:min(len(alike), maxAlike)] {
		c, err := s.tree.read(name)
		if err != nil || r.Ref.Sum == "" || s.budget <= 0 {
			continue
		}
		s.budget -= int64(len(c.text))
		if _, found := c.find(r.Ref.Sum, r.Ref.Lines, r.Ref.Context, &s.budget); found || Sum(c.text) == r.Ref.Sum {
			s.moveTo(r, name, c)
			return
		}
	}
}

// moveTo says that the lines are in another file.
func (s *search) moveTo(r *Resolution, name string, c *content) {
	r.File, r.Note = name, ""
	s.compare(r, c)
	r.Status, r.Note = Moved, ""
	r.note("%s is %s now", r.Ref.File, name)
	if r.Lines != r.Ref.Lines && !r.gone {
		r.note("lines %s are lines %s", r.Ref.Lines, r.Lines)
	}
}

// common counts the folders at the ends of two paths that are the same.
func common(a, b string) (n int) {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	for n < min(len(x), len(y)) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}

// noteDeletions says of files that are gone which commit removed them, or that the branch never had them.
func (s *search) noteDeletions() {
	var gone []string
	for _, r := range s.missing {
		if r.Status == NotFound && len(gone) < maxNames && !slices.Contains(gone, r.Ref.File) {
			gone = append(gone, r.Ref.File)
		}
	}
	if len(gone) == 0 {
		return
	}
	if s.git == nil {
		for _, r := range s.missing {
			if r.Status == NotFound {
				r.note("no file here has these lines; %v", s.noGit)
			}
		}
		return
	}
	var deletions map[string]deletion
	if s.git.head != "" {
		deletions = s.git.deletions(gone)
	}
	onBranch := map[string]string{} // by commit, what to say
	for _, r := range s.missing {
		if r.Status != NotFound {
			continue
		}
		if d, ok := deletions[r.Ref.File]; ok {
			r.LastCommit = d.parent
			r.note("commit %.12s removed the file on %s", d.commit, d.at.Format("2006-01-02"))
			continue
		}
		if _, ok := onBranch[r.Ref.Commit]; !ok && len(onBranch) < maxCommits {
			onBranch[r.Ref.Commit] = s.noteBranch(r.Ref.Commit)
		}
		r.note("%s", cmp.Or(onBranch[r.Ref.Commit], "no file here has these lines"))
	}
}

// noteBranch says what a commit has to do with the one that is checked out.
func (s *search) noteBranch(commit string) string {
	if commit == "" || s.git.head == "" {
		return ""
	}
	contains, known := s.git.contains(commit)
	switch {
	case s.git.ctx.Err() != nil:
		return "git did not answer in time"
	case !known && s.git.shallow:
		return "commit " + commit[:12] + " is not in this shallow clone"
	case !known:
		return "commit " + commit[:12] + " is not in this repository"
	case contains:
		return "the file was removed, and not committed yet"
	case s.git.branch != "":
		return "commit " + commit[:12] + " is not on the branch " + s.git.branch
	}
	return "commit " + commit[:12] + " is not in the history of what is checked out"
}
