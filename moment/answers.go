package moment

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/ctxdir/ctxdir/transcript"
)

// maxClaims is the number of moments of one answer.
const maxClaims = 8

// claims are the passages of an answer that say what was decided, mended or found.
func (t *turn) claims() (all []find) {
	for _, p := range sentence.Outline(t.Text.Text) {
		if p.Title {
			continue
		}
		before := ""
		if len(p.Leads) > 0 {
			before = p.Leads[0]
		}
		units := []string{p.Text}
		if !p.Item || sentence.Count(p.Text) > maxWords {
			units = sentence.Split(p.Text)
		}
		for _, s := range units {
			if kind, signs := t.judge(&p, s); kind != "" {
				if p.Parent != "" && p.Item {
					s = p.Parent + " " + s
				}
				all = append(all, t.find(kind, signs, s, before))
			}
			before = s
		}
	}
	if t.mended && t.works {
		all = append(all, t.first()...)
	}
	slices.SortStableFunc(all, func(a, b find) int { return b.signs - a.signs })
	return all[:min(len(all), maxClaims)]
}

// first is what an answer that begins with "Fixed" says next.
func (t *turn) first() []find {
	for i, s := range sentence.Split(t.Text.Text) {
		plain := strings.TrimSpace(fixed.ReplaceAllString(s, ""))
		switch n := sentence.Count(plain); {
		case i > 2:
			return nil
		case n >= minFact && n <= maxWords && isStatement(plain):
			return []find{t.find(Solution, 2, s, "")}
		}
	}
	return nil
}

var fixed = words(`^(?:done|great|perfect|yes)?\W*(?:i(?:'ve|’ve| have)? )?fixed\b(?: it| that| both)?[ .:!—–-]*`)

var (
	mends = words(`^(?:let me|i'll|i will|i'm|i am)(?: just| now| going to)? (?:fix|restart|remov|patch|delet|revert|replac|` +
		`set|switch|correct|guard|allow|disabl|narrow|add|handl)\w*\b`)
	// trivial are faults of the moment: what a compiler or a linter says.
	trivial = words(`\b(?:tests?|lint\w*|compil\w+|imports?|type ?check\w*|signature|unused|syntax|typo|mock|indent\w*|sed|` +
		`edits?|command)\b`)
	// settles is a choice that the assistant makes while it works, with what it is made against or for.
	settles = words(`\b(?:i'm|i'll|i am|i will)(?: going to)? (?:keep|mak|us|treat|delet|remov|disabl|replac|resolv|reus|`+
		`align|store|leav)(?:e|ing)?\b.*\b(?:instead of|rather than|so (?:that|the|it|other)|because|without|fail closed)\b`,
		`^we should\b.*\b(?:to match|instead|rather|so|always|never|only)\b`,
		`^(?:since|because)\b.*\b(?:i'm|i'll) (?:keep|mak|us|treat|delet|remov|disabl|replac|stor|leav)(?:e|ing)\b`)
	// accepts is how the assistant takes over what a person says.
	accepts = words(`^(?:you['’]re (?:absolutely |totally |completely )?right|good (?:point|catch|idea|call)|agreed|` +
		`makes sense|got it|understood|fair|` +
		`that['’]s a (?:clean|good|fair|solid) \w+|(?:option|approach) \w+ it is|\w+ it is|perfect|` +
		`great)\b[^.!:—–-]{0,30}(?:[.!,:]| [—–-]) *`)
	fault = words(`\b(?:because|overrid(?:es|ing|den)|instead of|but|isn't|doesn't|didn't|wasn't|wrong|missing|fail(?:s|ed)?|` +
		`issue|problem|cause|stale)\b`)
)

// causes are what the assistant finds and chooses while it works on a task that succeeds: a fault that it names and mends
// in the same breath, a root cause, a choice with what it is made against or for, and what the work needs.
func (t *turn) causes() (all []find) {
	if !t.done {
		return nil
	}
	before := ""
	for _, p := range sentence.Outline(t.Text.Text) {
		split := sentence.Split(p.Text)
		for i, s := range split {
			said := straight(s)
			switch n := sentence.Count(s); {
			case n < minWords || n > maxWords || trivial.MatchString(said):
			case settles.MatchString(said):
				all = append(all, t.find(Decision, 2, s, before))
			case !isStatement(s):
			case i+1 < len(split) && mends.MatchString(straight(split[i+1])) && fault.MatchString(said):
				all = append(all, t.find(Solution, 2, s+" "+split[i+1], before))
			case verdicts[Context].plain.MatchString(said):
				all = append(all, t.find(Context, 2, s, before))
			case verdicts[Solution].plain.MatchString(said):
				all = append(all, t.find(Solution, 2, s, before))
			}
			before = s
		}
	}
	return all
}

// accepted is the rule or the choice that the assistant takes over from a person, in its own words.
func (t *turn) accepted() []find {
	if t.before == nil || t.before.Voice != transcript.User || !t.works {
		return nil
	}
	text := t.Text.Text
	at := accepts.FindStringIndex(text)
	if at == nil {
		return nil
	}
	split := sentence.Split(text[at[1]:])
	if len(split) == 0 || !isStatement(split[0]) || follows.MatchString(straight(split[0])) || strings.HasSuffix(split[0], ":") {
		return nil
	}
	// After a dash comes what was accepted; after a full stop it may be something else.
	dash := strings.ContainsAny(text[:at[1]], "—–") || strings.Contains(text[:at[1]], " -")
	if !dash && !binding.MatchString(split[0]) {
		return nil
	}
	kind := Decision
	if lasting.MatchString(split[0]) {
		kind = Pattern
	}
	return []find{t.find(kind, 3, split[0], "", t.before.ID)}
}

var (
	binding = words(`\b(?:should|must|needs?|never|always|only)\b`, `\b(?:better|cleaner|simpler|safer|more \w+) (?:than|to)\b`,
		`\binstead\b`, `\brather\b`)
	// wonders is a question of a person about the project, rather than about the work.
	wonders = words(`^(?:\w+[, ]+){0,3}(?:how|what|why|where|which|when|explain|explore)\b`,
		`\b(?:do|does|is|are) (?:we|it|this|that|the|there)\b[^.]*\?`)
	// follows begins a sentence that needs the one before it.
	follows = words(`^(?:so|for example|example|when|compared|if|those|these|it's|that's|the key)\b`)
	names   = regexp.MustCompile("`[^`]+`")
)

// explains reports whether an answer is one to a question about the project.
func (t *turn) explains() bool {
	return t.prompt != nil && t.prompt.typed() && wonders.MatchString(strings.TrimSpace(t.prompt.Text.Text))
}

// explained is the first thing that an answer says to a question about the project.
func (t *turn) explained() (all []find) {
	if !t.works || !t.explains() || strings.HasSuffix(strings.TrimSpace(t.Text.Text), "?") {
		return nil
	}
	for _, p := range sentence.Outline(t.Text.Text) {
		for _, s := range sentence.Split(p.Text) {
			said := straight(s)
			if p.Title || sentence.Count(s) < minFact || !isStatement(s) || strings.HasSuffix(s, ":") || now.MatchString(said) ||
				follows.MatchString(said) || recommends.MatchString(said) {
				continue
			}
			signs := 0
			for _, sign := range []*regexp.Regexp{names, reason, contrast} {
				if sign.MatchString(said) {
					signs++
				}
			}
			if len(all) == 0 && !p.Item {
				signs++
			}
			if signs >= 2 {
				all = append(all, t.find(Context, signs, s, ""))
			}
			if len(all) == maxFacts {
				return all
			}
		}
	}
	return all
}

// maxFacts is the number of facts of one explanation, and minFact that of the words of one.
const (
	maxFacts = 3
	minFact  = 8
)
