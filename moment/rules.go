package moment

import (
	"regexp"
	"strings"
	"sync"

	"github.com/ctxdir/ctxdir/internal/sentence"
)

// words is an expression that is compiled when it is first needed: a program that finds no moments starts without.
func words(alternatives ...string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(?:` + strings.Join(alternatives, "|") + `)`) })
}

// The grammar of a sentence says more about its weight than what it is about, and is the same in every project.
var (
	// obliges says what has to be, and forever that it lasts.
	obliges = words(`\b(?:should|must|needs?(?: to)?|has to|have to|prefere?|rather|makes sense to)\b`, `\b(?:shouldn|mustn)'t\b`,
		`\b(?:let's|lets) (?:use|keep|call|go|do|make|name)\b`, `\bi (?:do )?(?:also )?want\b`,
		`\b(?:don't|dont|do not) (?:want|need)\b`, `\bno need\b`, `\bfor now\b`)
	forever = words(`(?:^|[,;:] ?(?:and |but )?)(?:please )?(?:never|always|don't ever|do not ever)\b`,
		`\b(?:should|must|you|we|i|can|to) (?:never|always)\b`, `\bfrom now on\b`, `\b(?:every time|each time|whenever) (?:you|we|i)\b`,
		`^when (?:i|you|we)\b.*\b(?:will|should|must|always)\b`)
	// contrast says what is not so, or only in one case, and reason why.
	contrast = words(`\b(?:instead of|rather than|no longer|not|unless|until|without|never|only|except|but|while)\b`,
		`\beven (?:if|when|for)\b`, `\w+n't\b`)
	reason = words(`\b(?:because|since|otherwise|due to)\b`, `\bso (?:that|the|it|they|we|a|each|any|no|\w+s)\b`,
		`\bto (?:avoid|prevent|match|ensure|preserve|keep)\b`, `\bwhich (?:means|caused)\b`, `\bthat way\b`)
	names = words("`[^`]+`")
	// status are sentences about the work itself, and about what may come.
	status = words(`\?["')*]*(?: |$)`,
		`^(?:let me|let's|now|next|first|then|i'll|i will|i'm|i am|we're|i can|i could|if you|want me|would you|shall|ready|send|`+
			`you can|you could|try|[✅❌✓])`,
		`\b(?:tests?|checks?|suite|lint\w*|build|ci|typecheck)\b[^.;]*\b(?:pass(?:es|ed|ing)?|green|clean|succeed\w*)\b`,
		`^(?:commit|branch|message|verified|confirmed|checked|pushed|committed|merged|created|switched|ran|running|`+
			`renamed|moved|deleted|added (?:\w+ ){0,3}(?:tests?|coverage|imports?))\b`)
	// hedged are guesses.
	hedged = words(`\b(?:looks|seems|appears|probably|likely|might|may|could|would|perhaps|maybe|currently)\b`,
		`\bi (?:bet|think|guess|suspect|believe|assume)\b`)
)

// places are the headings, labels and introductions under which an answer says something of a type. "" is what a person
// does not look for later.
var places = []struct {
	kind  Type
	words func() *regexp.Regexp
}{
	{Decision, words(`\bdecisions?\b`, `\bnon-?goals?\b`, `\bout of scope\b`, `\bagreed\b`)},
	{"", words(`\b(?:tests?|verif\w+|validat\w+|status|files?|next|todos?|options?|plan(?:ned|s)?|examples?|questions)\b`,
		`\b(?:suggest\w*|recommend\w*|propos\w*|before|trade-?offs?)\b`)},
	{Solution, words(`\bfix(?:es|ed)?\b`, `\broot causes?\b`, `^(?:the )?cause\b`, `\bsolution\b`, `\bresolution\b`)},
	{Context, words(`\bblockers?\b`, `\bconcerns?\b`, `\brisks?\b`, `\bconstraints?\b`, `\blimit(?:ation)?s?\b`, `\bcaveats?\b`,
		`\bgotchas?\b`, `\b(?:pre)?requirements?\b`, `\bprerequisites?\b`, `\bknown issues\b`)},
	{Pattern, words(`\bconventions?\b`, `\brules?\b`, `\bguidelines?\b`)},
}

// placeOf returns the type of the nearest of the leads that says one. known is false if none does.
func placeOf(p *sentence.Passage) (kind Type, known bool) {
	for _, lead := range p.Leads {
		for _, at := range places {
			if at.words().MatchString(lead) {
				return at.kind, true
			}
		}
	}
	return "", false
}

// verdicts are the words by which a sentence itself says that it is of a type.
var verdicts = []struct {
	kind  Type
	words func() *regexp.Regexp
}{
	{Decision, words(`\b(?:we|i)(?:'ve| have)? (?:decided|agreed|chose|chosen|opted|settled|went with)\b`,
		`\b(?:we|i) (?:\w+ ){1,8}(?:rather than|instead of)\b`)},
	{Solution, words(`\broot cause\b`, `\b(?:was|were|is|are) caused by\b`, `\bstems? from\b`,
		`^found (?:it|the (?:cause|bug|problem|issue))\b`,
		`\bthe (?:actual |real |core |main )?(?:cause|culprit|bug|problem|issue|fix|reason) was\b`,
		`\bit was (?:actually|really|just) .*\bthat\b`)},
	{Context, words(`\bblocked\b.*\b(?:because|until|by)\b`, `\bneeds? .+ to (?:run|start|work|build)\b`, `\brequires?\b`,
		`\b(?:not|aren't|isn't) (?:available|supported|allowed)\b`, `\b(?:doesn't|don't|does not|do not) support\b`,
		`\bonly (?:supports?|works?|available|allowed|runs?|accepts?)\b`,
		`\b(?:is|are) (?:stored|located|defined|reachable|logged|kept|written)\b`)},
	{Pattern, words(`\bfollow(?:s|ing)? the (?:same |existing )?(?:pattern|convention|style)`, `\bby convention\b`, `\bsame pattern as\b`)},
}

func verdictOf(s string) Type {
	for _, v := range verdicts {
		if v.words().MatchString(s) {
			return v.kind
		}
	}
	return ""
}

// enough is the number of signs of a moment, and weak that of what may be one.
const (
	enough = 3
	weak   = 2
)

// minWords and maxWords bound what says something by itself.
const (
	minWords = 5
	maxWords = 50
)

// isStatement reports whether a sentence can say something that lasts.
func isStatement(s string) bool {
	n, said := sentence.Count(s), straight(s)
	return n >= minWords && n <= maxWords && !status().MatchString(said) && (!hedged().MatchString(said) || verdictOf(said) == Decision)
}

// straight replaces the apostrophes of typesetters, which rules do not have.
func straight(s string) string { return strings.ReplaceAll(s, "’", "'") }

// count returns how many of the expressions match.
func count(s string, all ...func() *regexp.Regexp) (n int) {
	for _, r := range all {
		if r().MatchString(s) {
			n++
		}
	}
	return n
}

// maxCause is the number of words of a fault with its mend.
const maxCause = 60

// distinct returns the words of a text.
func distinct(text string) map[string]bool {
	all := map[string]bool{}
	for word := range sentence.Words(text) {
		all[word] = true
	}
	return all
}
