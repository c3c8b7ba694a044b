package moment

import (
	"regexp"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/ctxdir/ctxdir/transcript"
	"github.com/google/uuid"
)

func words(alternatives ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:` + strings.Join(alternatives, "|") + `)`)
}

// places are the headings, labels and introductions under which an answer says something of a type. "" is what a person
// does not look for later.
var places = []struct {
	kind  Type
	words *regexp.Regexp
}{
	{Decision, words(`\bdecisions?\b`, `\bnon-?goals?\b`, `\bout of scope\b`, `\btrade-?offs?\b`, `\bdesign choices?\b`, `\bverdict\b`,
		`\bproduct direction\b`, `\bagreed\b`, `\bsemantics\b`)},
	{"", words(`\btests?\b`, `\bverif\w+\b`, `\bvalidat\w+\b`, `\bstatus\b`, `\bfiles?\b`, `\bnext\b`, `\btodos?\b`, `\boptions?\b`,
		`\bplan(?:ned|s)?\b`, `\bexamples?\b`, `\bquestions\b`, `\bsuggest\w*\b`, `\brecommend\w*\b`, `\bpropos\w*\b`, `\bpossible\b`,
		`\bbefore\b`, `\breviewer\b`)},
	{Solution, words(`\bfix(?:es|ed)?\b`, `\broot causes?\b`, `^(?:the )?cause\b`, `\bsolution\b`, `\bresolution\b`,
		`\bwhat was wrong\b`)},
	{Context, words(`\bblockers?\b`, `\bconcerns?\b`, `\brisks?\b`, `\bconstraints?\b`, `\blimit(?:ation)?s?\b`, `\bcaveats?\b`,
		`\bnuance\b`, `\bnotes?\b`, `\bgotchas?\b`, `\b(?:pre)?requirements?\b`, `\bprerequisites?\b`, `\bknown issues\b`,
		`\bwhat .* (?:is|are)\b`, `\boverview\b`)},
	{Pattern, words(`\bconventions?\b`, `\brules?\b`, `\bguidelines?\b`, `\bprinciples?\b`, `\bbest practices?\b`)},
}

// placeOf returns the type of the nearest of the leads that says one. known is false if none does.
func placeOf(p *sentence.Passage) (kind Type, known bool) {
	for _, lead := range p.Leads {
		for _, at := range places {
			if at.words.MatchString(lead) {
				return at.kind, true
			}
		}
	}
	return "", false
}

// verdicts are the words by which a sentence itself says that it is of a type. A plain one is enough; another needs one
// more sign.
var verdicts = map[Type]struct{ plain, other *regexp.Regexp }{
	Decision: {
		words(`\b(?:we|i)(?:'ve| have)? (?:decided|agreed|chose|chosen|opted|settled|went with)\b`),
		words(`\b(?:intentional|deliberate|intentionally|deliberately|by design|on purpose)\b`, `\b(?:rather than|instead of)\b`,
			`\bdeferred (?:to|until)\b`, `\bgoing with\b`, `\b(?:i|we) kept\b`, `\bunless\b`, `\bby default\b`, `\bprecedence\b`,
			`\bfalls? back\b`, `\bdefaults? to\b`, `^(?:always|never)\b`)},
	Solution: {
		words(`\broot cause\b`, `\b(?:was|were|is|are) caused by\b`, `\bstems? from\b`, `^found (?:it|the (?:cause|bug|`+
			`problem|issue))\b`,
			`\bthe (?:actual |real |core |main )?(?:cause|culprit|bug|problem|issue|fix|reason) was\b`),
		words(`\bthe (?:actual |real |core )?(?:cause|culprit|fix|bug|problem|issue) (?:was|`+
			`is)\b`, `\bno longer\b`, `\bturned out\b`,
			`\bthis now prevents\b`, `\b(?:failed|fails|failing|broke|breaks|crashed|hung|slow|flaky|`+
				`leaked) (?:\w+ ){0,2}because\b`)},
	Context: {
		words(`\bblocked\b.*\b(?:because|until|by)\b`, `\bneeds? .+ to (?:run|start|work|build)\b`),
		words(`\brequires?\b`, `\bonly (?:supports?|works?|available|allowed|runs?)\b`, `\bnot (?:available|supported|allowed)\b`,
			`\bunavailable\b`, `\bdepends on\b`)},
	Pattern: {
		words(`\bfollow(?:s|ing)? the (?:same |existing )?(?:pattern|convention|`+
			`style)`, `\bby convention\b`, `\bsame pattern as\b`),
		words(`\b(?:must|should) (?:always|never)\b`, `\bsingle source of truth\b`)},
}

var (
	reason = words(`\bbecause\b`, `\bsince\b`, `\bso (?:that|the|it|they|that|we|a|each|any|no|callers?|users?|clients?|`+
		`requests?)\b`,
		`\bdue to\b`, `\bto (?:avoid|prevent|match|ensure|preserve|handle|keep)\b`,
		`\b(?:prevents?|ensures?|avoids?|guarantees?|mitigated|causes?)\b`, `\botherwise\b`, `\bwhich (?:means|caused)\b`)
	contrast = words(`\bno longer\b`, `[(,] ?not\b`, `\bunless\b`, `\buntil\b`, `\bwithout\b`, `\bnever\b`, `\bonly\b`,
		`\beven (?:if|when|for|after)\b`, `\bas opposed to\b`)
	// weighed is a choice that says who made it, or that asks for it.
	weighed = words(`^(?:keep|use|add|make|move|store|return|treat|compare)\b.*\b(?:rather than|instead of)\b`,
		`\b(?:we|i) .*\b(?:rather than|instead of)\b`, `^instead of\b.*\bwe\b`)
	// chosen are words of a sentence that says that something is done so from then on.
	chosen = words(`\bunless\b`, `\bby default\b`, `\bprecedence\b`, `\bfalls? back\b`, `\bdefaults? to\b`,
		`^(?:keep|drop|prefer|avoid|always|never)\b`, `\b(?:i|we)\b`, `\bnow\b`)
	now = words(`\bnow\b`)
	// status are sentences about the work itself, and about what may come.
	status = words(`\?["')]*(?: |$)`,
		`^(?:let me|let's|next|first|then|i'll|i will|i'm|i am|we're|i can|i could|if you|want me|would you|shall|ready|send|`+
			`you can|you could|try|[✅❌✓])`,
		`\b(?:tests?|checks?|suite|lint\w*|build|ci|typecheck)\b[^.;]*\b(?:pass(?:es|ed|ing)?|green|clean|succeed\w*)\b`,
		`\ball (?:tests|checks)\b`, `^i(?:'ve)? (?:ran|added|committed|checked|updated|created|tested)\b`, `\bcleanup\b`,
		`^(?:commit|branch|message|verified|confirmed|checked|pushed|committed|merged|created|switched|ran|running|updated|`+
			`renamed|moved|removed|deleted|added (?:\w+ ){0,2}(?:tests?|coverage))\b`,
		`\b(?:old|previous) (?:code|behaviou?r)\b`,
		`\bnow (?:resolved|fixed|complete\w*|ready|green|in place|clean)\b`)
	// hedged are guesses.
	hedged = words(`\b(?:looks|seems|appears|probably|likely|might|may|could|would|perhaps|maybe|currently)\b`,
		`\bi (?:bet|think|guess|suspect|believe|assume)\b`,
		`\bif (?:that's|so|not)\b`)
	// defines says what a thing of this project is, where an answer is about that.
	defines = words(`^(?:it|this|the \w+|[\w.-]+)(?: \w+)?(?:'s| is| are) (?:an?|the)\b`)
)

// find is a moment and how many signs it has.
type find struct {
	Moment
	signs int
}

// enough is the number of signs of a moment, and weak that of what may be one.
const (
	enough = 2
	weak   = 1
)

func (t *turn) finds() (all []find) {
	switch {
	case t.Voice == transcript.User && strings.HasPrefix(t.Text.Text, answered):
		return t.answers()
	case t.typed():
		if t.works && !t.alone {
			return append(t.ruling(), t.rules()...)
		}
	case t.Voice == transcript.Assistant && t.answer:
		return append(t.accepted(), append(t.claims(), t.explained()...)...)
	case t.Voice == transcript.Assistant && t.works:
		return append(t.accepted(), t.causes()...)
	}
	return nil
}

func (t *turn) find(kind Type, signs int, content, background string, from ...uuid.UUID) find {
	return find{Moment{At: t.At, Type: kind, Content: content, Background: background, From: append([]uuid.UUID{t.ID}, from...)}, signs}
}

// minWords and maxWords bound what says something by itself.
const (
	minWords = 5
	maxWords = 50
)

// isStatement reports whether a sentence can say something that lasts.
func isStatement(s string) bool {
	n, said := sentence.Count(s), straight(s)
	return n >= minWords && n <= maxWords && !status.MatchString(said) &&
		(!hedged.MatchString(said) || verdicts[Decision].plain.MatchString(said))
}

// straight replaces the apostrophes of typesetters, which rules do not have.
func straight(s string) string { return strings.ReplaceAll(s, "’", "'") }

// judge returns the type that a passage has most signs of: the place, a verdict, a reason, a contrast.
func (t *turn) judge(p *sentence.Passage, s string) (best Type, most int) {
	if !isStatement(s) {
		return "", 0
	}
	s = straight(s)
	common := 0
	for _, sign := range []*regexp.Regexp{reason, contrast} {
		if sign.MatchString(s) {
			common++
		}
	}
	place, known := placeOf(p)
	if !known && t.mended && p.Item {
		place, known = Solution, true
	}
	for _, kind := range order {
		v := verdicts[kind]
		at := known && place == kind
		signs := 0
		switch {
		case v.plain.MatchString(s) && (t.works || kind == Decision || kind == Solution):
			signs += 2
		case !t.works || known && place == "" || strings.HasSuffix(s, ":") && !p.Code:
			continue
		case kind == Context && at && defines.MatchString(s) && !strings.HasPrefix(s, "A "):
			signs++
		case kind == Decision && weighed.MatchString(s):
			signs += 2
		case kind == Solution && at && now.MatchString(s):
			signs++
		case kind == Decision && p.Item && t.acted && !known && !t.explains() && reason.MatchString(s) && names.MatchString(s):
			signs++
		case v.other.MatchString(s) && (kind != Solution || at || t.mends) && (kind != Decision || at || chosen.MatchString(s)):
			signs++
		}
		if at {
			signs++
			if kind == Decision && p.Item {
				signs++
			}
		}
		if signs > 0 && signs+common > most {
			best, most = kind, signs+common
		}
	}
	return best, most
}

var order = []Type{Solution, Decision, Context, Pattern}
