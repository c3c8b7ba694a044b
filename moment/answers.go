package moment

import (
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/ctxdir/ctxdir/transcript"
)

// maxClaims is the number of moments of one answer that no heading announces, and maxListed that of others.
const (
	maxClaims = 2
	maxListed = 8
)

// claims are the passages of an answer that say what was decided or found: what stands below a heading that says so, what
// says so itself, and what an answer to the report of a fault says most about.
func (t *turn) claims() []find {
	var claimed, listed []find
	passages := sentence.Outline(t.Text.Text)
	mended := t.edited && (t.prompt == nil || len(t.prompt.finds()) == 0) && question(passages[max(0, len(passages)-2):]) == ""
	repairs := t.repairs(passages)
	for _, p := range passages {
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
		place, known := placeOf(&p)
		for _, s := range units {
			said, whole := straight(s), s
			if p.Parent != "" && p.Item {
				whole = p.Parent + " " + s
			}
			verdict := verdictOf(said)
			signs := count(said, contrast, reason, obliges, names, isNow) + t.echo(said)
			switch {
			case !isStatement(s) || known && place == "" && verdict == "" || strings.HasSuffix(s, ":"):
			case known && p.Item && (place == Decision || place == Context) && t.works:
				listed = append(listed, t.find(place, enough+signs, whole, before))
			case verdict != "" && t.concludes(verdict, said):
				listed = append(listed, t.find(verdict, enough+signs, whole, before))
			case t.works && !t.edited && (severity().MatchString(said) || len(p.Leads) > 0 && severity().MatchString(p.Leads[0])):
				claimed = append(claimed, t.find(Solution, enough+signs, whole, before))
			case mended && (repairs || place == Solution) && count(said, contrast, reason) > 0:
				if place == Solution {
					signs++
				}
				claimed = append(claimed, t.find(Solution, signs, whole, before))
			}
			before = s
		}
	}
	return append(best(listed, maxListed), best(claimed, maxClaims)...)
}

// concludes reports whether the verdict of a sentence counts: without tools only a decision or a cause does.
func (t *turn) concludes(verdict Type, s string) bool {
	if verdict == Solution {
		return !trivial().MatchString(s)
	}
	return t.works || verdict == Decision
}

var (
	// severity labels what a review finds.
	severity = words("^(?:critical|high|medium|p[0-3])(?: severity)?(?:$|[:)]| [`—–-])")
	isNow    = words(`\bnow\b`)
	faults   = words(`\b(?:fix|bugs?|fail\w*|errors?|wrong|broken?|issues?|problems?|crash\w*|incorrect\w*|missing)\b`)
)

// repairs reports whether a task is about a fault: its prompt says so, or the beginning of the answer.
func (t *turn) repairs(passages []sentence.Passage) bool {
	return t.prompt != nil && t.prompt.typed() && faults().MatchString(straight(t.prompt.Text.Text)) ||
		len(passages) > 0 && faults().MatchString(passages[0].Text)
}

// echo is 1 for a sentence that has a third of its words from the prompt, else 0.
func (t *turn) echo(s string) int {
	if t.prompt == nil || !t.prompt.typed() {
		return 0
	}
	asked, n, shared := distinct(t.prompt.Text.Text), 0, 0
	for word := range distinct(s) {
		if len(word) > 3 {
			n++
			if asked[word] {
				shared++
			}
		}
	}
	if n > 0 && shared*3 >= n {
		return 1
	}
	return 0
}

// best returns at most n of the finds, those with most signs.
func best(all []find, n int) []find {
	slices.SortStableFunc(all, func(a, b find) int { return b.signs - a.signs })
	return all[:min(len(all), n)]
}

var (
	mends = words(`^(?:let me|i'll|i will|i'm|i am)(?: just| now| going to)? (?:fix|restart|remov|patch|delet|revert|replac|` +
		`set|switch|correct|guard|allow|disabl|narrow|add|handl)\w*\b`)
	// trivial are faults of the moment: what a compiler or a linter says.
	trivial = words(`\b(?:tests?|lint\w*|compil\w+|imports?|type ?check\w*|unused|syntax|typo|coverage|edits?|command)\b`)
	fault   = words(`\b(?:because|overrid(?:es|ing|den)|instead of|but|wrong|missing|fail(?:s|ed)?|issue|problem|cause|stale|never)\b`,
		`n't\b`)
	// settles is a choice that the assistant makes while it works.
	settles = words(`\b(?:i'm|i'll|i am|i will)(?: going to)? (?:\w+ ){0,2}(?:add|keep|mak|us|treat|remov|disabl|replac|resolv|reus|renam|` +
		`align|store|leav)(?:e|ing)?\b.*\b(?:instead of|rather than|while keeping|without|unless|only|and keep|and leave|fail closed)\b`)
	ought = words(`^we (?:should|must|need to|have to)\b`)
	// accepts is how the assistant takes over what a person says.
	accepts = words(`^(?:you['’]re (?:absolutely |totally |completely )?right|good (?:point|catch|idea|call)|agreed|` +
		`that['’]s a (?:clean|good|fair|solid) \w+|(?:option|approach) \w+ it is|\w+ it is|perfect|` +
		`great)\b[^.!:—–-]{0,30}(?:[.!,:]| [—–-]) *`)
	// follows begins a sentence that needs the one before it, and leads one about the work or a case.
	follows  = words(`^(?:so|but|and|also|then|it|this|that|those|these|it's|that's)\b`)
	personal = words(`^i\b`)
	leads    = words(`^(?:for example|example|when|compared|if|the key)\b`)
)

func (t *turn) finds() []find {
	switch {
	case t.Voice == Commit:
		return t.committed()
	case t.Voice == transcript.User && strings.HasPrefix(t.Text.Text, answered):
		return t.answers()
	case t.typed():
		if t.works && !t.alone {
			return append(t.ruling(), t.rules()...)
		}
	case t.Voice == transcript.Assistant && t.answer:
		return append(t.accepted(), t.claims()...)
	case t.Voice == transcript.Assistant && t.works:
		return append(t.accepted(), t.causes()...)
	}
	return nil
}

// causes are what the assistant finds and chooses while it works: the fault that it names before it mends it, and a
// choice with what it is made against.
func (t *turn) causes() (all []find) {
	var split []string
	for _, p := range sentence.Outline(t.Text.Text) {
		split = append(split, sentence.Split(p.Text)...)
	}
	from := 0
	for i, s := range split {
		said := straight(s)
		switch {
		case t.edited && chosen(said) && sentence.Count(s) <= maxWords && !trivial().MatchString(said):
			all = append(all, t.find(Decision, enough, s, ""))
		case mends().MatchString(said) && (t.done || t.Edits):
			if named := faultOf(split[max(from, i-maxNamed):i]); named != "" {
				all = append(all, t.find(Solution, enough, named, ""))
			}
			from = i + 1
		case isStatement(s) && verdictOf(said) == Context && !trivial().MatchString(said):
			all = append(all, t.find(Context, enough, s, ""))
		}
	}
	return all
}

// chosen reports whether the assistant says in a sentence what it is going to do rather than something else.
func chosen(s string) bool {
	return (settles().MatchString(s) || ought().MatchString(s) && count(s, contrast, reason) > 0) &&
		!chore().MatchString(s) && !leads().MatchString(s)
}

// maxNamed is the number of sentences before the mend that may name the fault.
const maxNamed = 4

// faultOf returns the sentence that says most about a fault, with the one before it if it needs that one.
func faultOf(split []string) (named string) {
	most := 0
	for i, s := range split {
		said := straight(s)
		if !isStatement(s) || strings.HasSuffix(s, ":") || trivial().MatchString(said) ||
			!fault().MatchString(said) && verdictOf(said) != Solution {
			continue
		}
		if follows().MatchString(said) {
			if i == 0 || status().MatchString(straight(split[i-1])) {
				continue
			}
			s = split[i-1] + " " + s
		}
		if n := 1 + count(said, contrast, reason, names); n > most && sentence.Count(s) <= maxCause {
			most, named = n, s
		}
	}
	return named
}

// accepted is the rule or the choice that the assistant takes over from a person, in its own words, if those of the
// person do not say it.
func (t *turn) accepted() []find {
	if t.before == nil || !t.before.typed() || strings.HasPrefix(t.before.Text.Text, answered) || !t.works {
		return nil
	}
	text := t.Text.Text
	at := accepts().FindStringIndex(text)
	if at == nil || len(t.before.finds()) > 0 {
		return nil
	}
	split := sentence.Split(text[at[1]:])
	if len(split) == 0 || !isStatement(split[0]) || strings.HasSuffix(split[0], ":") ||
		count(straight(split[0]), follows, leads, personal) > 0 {
		return nil
	}
	// After a dash comes what was accepted; after a full stop it may be something else.
	dash := strings.ContainsAny(text[:at[1]], "—–") || strings.Contains(text[:at[1]], " -")
	if !dash && count(straight(split[0]), obliges, forever, contrast) == 0 {
		return nil
	}
	kind := Decision
	if forever().MatchString(split[0]) {
		kind = Pattern
	}
	return []find{t.find(kind, enough, split[0], "", t.before.ID)}
}
