package redact

import (
	"cmp"
	"slices"
	"strings"
)

// Text replaces what is found in a text.
func (r *Redactor) Text(text string) Text {
	found := r.Find(text)
	if len(found) == 0 {
		return Text{text}
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		r.report(text, f)
		b.WriteString(text[at:f.Start] + f.Kind.Replacement())
		at = f.End
	}
	b.WriteString(text[at:])
	return Text{b.String()}
}

func (r *Redactor) report(text string, f Finding) {
	if r.found != nil {
		r.found(text, f)
	}
}

var everything = func() *Redactor {
	r, err := New(Options{Kinds: Kinds})
	if err != nil {
		panic(err) // the options are constants
	}
	return r
}()

// Find returns what all patterns find in a text, in order and without overlaps.
func Find(text string) []Finding { return everything.Find(text) }

// Find returns what is found in a text, in order and without overlaps.
func (r *Redactor) Find(text string) []Finding {
	if r == nil {
		return nil
	}
	s := search{text: text, kinds: r.kinds}
	s.run()
	if r.words != nil {
		for _, at := range r.words.FindAllStringIndex(text, -1) {
			s.found = append(s.found, Finding{Word, at[0], at[1], "word"})
		}
	}
	return merged(text, s.found)
}

// merged sorts findings, and joins those that overlap.
func merged(text string, found []Finding) (all []Finding) {
	for i := range found {
		found[i].Start = beforeEscape(text, found[i].Start)
		if end := beforeEscape(text, found[i].End); end > found[i].Start { // a word may be a backslash
			found[i].End = end
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(rank(a.Kind), rank(b.Kind)))
	})
	for _, f := range found {
		if last := len(all) - 1; last >= 0 && f.Start < all[last].End {
			all[last].End = max(all[last].End, f.End)
			if rank(f.Kind) < rank(all[last].Kind) {
				all[last].Kind, all[last].Rule = f.Kind, f.Rule
			}
			continue
		}
		all = append(all, f)
	}
	return all
}

func rank(k Kind) int { return slices.Index(Kinds, k) }

func (s *search) run() {
	keys, tokens := s.kinds[Key], s.kinds[Token]
	if keys || tokens {
		s.services()
	}
	if keys {
		s.privateKeys()
		s.assignments()
	}
	if keys || tokens {
		s.addresses()
	}
	if tokens {
		s.webTokens()
	}
	if s.kinds[Mail] {
		s.mails()
	}
	if s.kinds[Path] {
		s.homes()
	}
	if s.kinds[Host] {
		s.hosts()
		s.privateIPs()
	}
	if s.kinds[Base64] {
		s.base64()
	}
}
