package moment

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/ctxdir/ctxdir/transcript"
)

var (
	// imperative is a choice in the form of a command.
	imperative = words(`\b(?:use|keep|make|put|call|name|remove|drop|show|return|leave|store|stop|skip|prefer|avoid|get rid of)\b.*`+
		`\b(?:no|not|instead|only|rather|without|no longer)\b`, `^(?:(?:no|nah|ok|yes|and|also|please)[, ]+)*(?:don't|dont|do not)\b`)
	// given are facts that a person knows.
	given = words(`\b(?:we|i) (?:no longer |now |only |still )?(?:use|run|host|deploy|support|ship)\b`, `\bour \w+ (?:is|are|runs?|uses?)\b`,
		`\byou (?:don't|dont|do not|can't|cannot) (?:have|access|use)\b`, `\b(?:is|its|it's) called\b`)
	// chore is what is to be done once.
	chore = words(`\b(?:to|should|must|let me|let's|please|and|then|you|we) (?:be |just |also )?(?:fix|commit|push|try|check|look|adjust|run|`+
		`re-?run|rebuild|rebas\w+|test|merge|release|see|find|figure|start|continue|investigate|debug|port|read|review|explain)(?:ed|s|ing)?\b`,
		`^(?:commit|push|fix|run|try|check|merge|read|review)\b`, `\b(?:pushing|committing|verifying|running|reading|checking|locating)\b`,
		`\b(?:need|want|have) (?:you|to (?:know|do|go|get|dig|add|mention|write|update|create))\b`, `\bneed an?\b`, `\bi want to\b`,
		`\bshould(?: \w+)? (?:work|happen|do it|be (?:good|fine|ok|done|ready))\b`, `\byou should\b`,
		`\b(?:write|add|create) (?:\w+ ){0,3}(?:tests?|scripts?)\b`, `\b(?:looks like|seems?)\b`, `^(?://|#!|\+|@@)`)
	asks = words(`\?(?:["')\s]|$)`, `^(?:what|why|how|which|where|who)\b`,
		`^(?:can|could|would|should|is|are|do|does|did) (?:you|we|i|it|the|this|that|there)\b`)
	// wonders is a question for an answer, and requests one for work.
	wonders  = words(`^(?:\w+,? ){0,2}(?:what|why|how|which|where|who|do|does|did|is|are|isn't|aren't|doesn't)\b`)
	requests = words(`^(?:\w+,? ){0,2}(?:can|could|would|should|how about|what about)\b`)
)

// small begins a sentence of a person who types without capitals.
var small = regexp.MustCompile(`[.!?]["')]* +\p{Ll}`)

// typedSentences cuts what a person typed into sentences, of which the next one may begin with a small letter.
func typedSentences(text string) (all []string) {
	for _, s := range sentence.Split(text) {
		for {
			at := small.FindStringIndex(s)
			if at == nil || strings.HasSuffix(s[:at[0]], "..") || sentence.Count(s[:at[0]]) < 2 {
				break
			}
			all = append(all, s[:at[0]+1])
			s = strings.TrimLeft(s[at[0]+1:], `"') `)
		}
		all = append(all, s)
	}
	return all
}

// maxTyped is the number of words of a message that is a moment as a whole.
const maxTyped = 30

// rules are what a person lays down: what has to be, rules that last, and facts. A question or a command is one only if
// the assistant then changed files.
func (t *turn) rules() (all []find) {
	before, said, why := "", 0, count(straight(t.Text.Text), contrast, reason) > 0
	for _, p := range sentence.Outline(t.Text.Text) {
		for _, s := range typedSentences(p.Text) {
			plain, n := straight(s), sentence.Count(s)
			question := asks().MatchString(plain)
			switch {
			case n < minWords || n > maxWords || chore().MatchString(plain) || question && (!t.edited || wonders().MatchString(plain)):
			case forever().MatchString(plain):
				all = append(all, t.find(Pattern, enough+1, s, before))
			case obliges().MatchString(plain), t.edited && (imperative().MatchString(plain) || requests().MatchString(plain) && why):
				all = append(all, t.find(Decision, enough+1, s, before))
			case verdictOf(plain) == Solution && !question:
				all = append(all, t.find(Solution, enough, s, before))
			case given().MatchString(plain) && !question:
				all = append(all, t.find(Context, enough, s, before))
			}
			before, said = s, said+n
		}
	}
	// A message with quotations, code or reminders is not a moment as a whole.
	whole := strings.TrimSpace(t.Text.Text)
	if len(all) == 0 || said > maxTyped || sentence.Count(whole) != said ||
		slices.ContainsFunc(all, func(f find) bool { return f.Type != all[0].Type }) {
		return all
	}
	all[0].Content, all[0].Background = whole, ""
	return all[:1]
}

var (
	assent = words(`^(?:yes|yep|yeah|yup|ok|okay|sure|agreed?|sounds good|go (?:with|for)|let's (?:do|go)|do|both|perfect|` +
		`great|good)\b`)
	chooses = words(`\b(?:option|approach|number|choice|do|go with|go for|let's do|prefer)\s*#?(\d{1,2}|[a-e])\b`,
		`^#?(\d{1,2}|[a-e])\W*$`, `^#?(\d{1,2})\b`)
	permit = words(`\b(?:want me to|would you like|shall i|should i|do you want me|ready to|can i|may i|let me know|proceed|` +
		`continue)\b`)
)

// maxReply is the number of words of a reply to the last question of an answer.
const maxReply = 15

// work are what an assistant asks leave for, rather than proposes.
var work = words(`\b(?:commit|push|run|test|tests|proceed|continue|check|look|pr|pull request|docs?|readme|changelog|next|` +
	`release|publish|merge|delete|restart|kill|fix|implement|investigate|go ahead)\b`)

// numbered are the answers of a person to questions or choices by their number.
func (t *turn) numbered(asked *turn, passages []sentence.Passage) (all []find) {
	for _, reply := range sentence.Outline(t.Text.Text) {
		if !reply.Item || reply.Number == "" {
			continue
		}
		for _, p := range slices.Backward(passages) {
			if p.Number == reply.Number {
				all = append(all, t.find(Decision, 4, p.Text+"\n"+reply.Text, "", asked.ID))
				break
			}
		}
	}
	return all
}

var (
	// symptom asks what happens, and states says it: neither chooses.
	symptom = words(`^(?:does|did|is|are|can|could|have|has)\b`)
	states  = words(`^(?:we|i|it|the|there|actually)\b`)
	// open asks for more than yes or no.
	open       = words(`^(?:which|what|how|where)\b`)
	pronoun    = words(`^(?:it|this|that|they)(?:'s|\b)`)
	adopts     = words(`\b(?:do|go with|use) (?:that|it|this)\b`, `\bsounds (?:good|right)\b`)
	choice     = words(`^(?:or )?(?:should|shall|do you (?:want|prefer)|would you (?:rather|prefer)|which|want)\b`)
	recommends = words(`\b(?:i'd|i would|i) (?:recommend|suggest|agree|go with|lean)\b`, `\brecommended\b`,
		`\b(?:best|better|cleanest|simplest|safest) (?:solution|option|approach|setup|way|fix)\b`,
		`\bis (?:the )?(?:cleanest|best|simplest|safest)\b`)
)

// recommendation returns the last sentence of a message that recommends something.
func recommendation(passages []sentence.Passage) string {
	for _, p := range slices.Backward(passages) {
		for _, s := range slices.Backward(sentence.Split(p.Text)) {
			n := sentence.Count(s)
			if n < minWords || n > maxWords || strings.HasSuffix(s, "?") || pronoun().MatchString(s) {
				continue
			}
			if recommends().MatchString(straight(s)) {
				return s
			}
		}
	}
	return ""
}

// maxRuling is the number of words of a terse ruling.
const maxRuling = 30

// ordinals are the options that a reply counts.
var ordinals = map[string]string{"first": "1", "second": "2", "third": "3", "fourth": "4"}

// chosenIn returns the number or the letter of the option that a reply takes, "" if it takes none.
func chosenIn(reply string) string {
	if m := chooses().FindStringSubmatch(reply); m != nil {
		return strings.ToLower(m[1] + m[2] + m[3])
	}
	if m := counts().FindStringSubmatch(reply); m != nil {
		return ordinals[strings.ToLower(m[1])]
	}
	return ""
}

var counts = words(`\b(first|second|third|fourth) (?:one|option|approach|way)\b`)

// ruling is a terse reply to a choice that the assistant put. The moment has the option, or else the question, before it.
func (t *turn) ruling() []find {
	text := strings.TrimSpace(t.Text.Text)
	asked := t.before
	if !t.works || asked == nil || asked.Voice != transcript.Assistant || sentence.Count(text) > maxRuling && !assent().MatchString(text) {
		return nil
	}
	first := text
	if split := typedSentences(text); len(split) > 0 {
		first = split[0]
	}
	if asks().MatchString(first) {
		return nil
	}
	passages := sentence.Outline(asked.Text.Text)
	if number := chosenIn(first); number != "" {
		for _, p := range slices.Backward(passages) {
			if p.Number == number {
				return []find{t.find(Decision, 4, p.Text+"\n"+first, question(passages), asked.ID)}
			}
		}
	}
	q := question(passages)
	if assent().MatchString(first) || adopts().MatchString(first) {
		if s := recommendation(passages); s != "" && (q == "" || open().MatchString(q) || permit().MatchString(q)) {
			return []find{t.find(Decision, 4, s+"\n"+first, "", asked.ID)}
		}
	}
	if all := t.numbered(asked, passages); len(all) > 0 {
		return all
	}
	n := sentence.Count(first)
	switch {
	case q == "" || n > maxReply || chore().MatchString(first) || symptom().MatchString(q),
		!choice().MatchString(q) && !strings.Contains(q, " or "), !assent().MatchString(first) && states().MatchString(first):
		return nil
	case permit().MatchString(q):
		if !assent().MatchString(first) || sentence.Count(q) < 9 || work().MatchString(q) {
			return nil
		}
	case assent().MatchString(first) && n < 3, n < 2:
		return nil
	}
	return []find{t.find(Decision, 4, q+"\n"+first, "", asked.ID)}
}

var (
	// pair is a question of a tool that asks the person, and the answer.
	pair       = regexp.MustCompile(`"([^"]+\?)"="([^"]+)"`)
	procedural = words(`\b(?:proceed|continue|next|ready|discuss|move on|approve|looks? (?:good|right)|start|commit|push|` +
		`would you like me|want me to|more questions|are we done)\b`)
	undecided = words(`^(?:you decide|up to you|your call|skip|done|no preference|not sure|hm+)\b`)
)

// answers are what a person chose of what a tool put to the choice.
func (t *turn) answers() (all []find) {
	for _, m := range pair.FindAllStringSubmatch(t.Text.Text, -1) {
		if !procedural().MatchString(m[1]) && !asks().MatchString(m[2]) && !undecided().MatchString(m[2]) {
			all = append(all, t.find(Decision, 4, m[1]+"\n"+m[2], ""))
		}
	}
	return all
}

// question returns the last question of a message.
func question(passages []sentence.Passage) string {
	for _, p := range slices.Backward(passages) {
		for _, s := range slices.Backward(sentence.Split(p.Text)) {
			if strings.HasSuffix(strings.TrimRight(s, `"')*`), "?") {
				return s
			}
		}
	}
	return ""
}
