package moment

import (
	"regexp"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
)

// cue is a way in which people say something of a type. Strength is from 0 to 1: weak ones count only together.
type cue struct {
	strength float64
	words    *regexp.Regexp
}

func cueOf(strength float64, words ...string) cue {
	return cue{strength, regexp.MustCompile(`(?i)(?:` + strings.Join(words, "|") + `)`)}
}

// people are those who decide in a conversation about work.
const people = `\b(?:we|i|it was|the (?:team|user|client|customer|group|maintainers?))`

// work are the subjects of facts about the work, as opposed to facts about the world.
const work = `(?:app|application|service|server|backend|back end|frontend|front end|project|product|system|library|team|company|` +
	`database|` +
	`api|endpoint|user|customer|client|data|device|model|docs?|documentation|ci|pipeline|build|tool|code ?base|repo|repository|code|` +
	`implementation|version|deadline|budget|release|site|website|page|store|machine|cluster|environment|image|test|payment|backup|` +
	`script|file|table|package|module|framework|plugin|protocol|network|job|log|account|warehouse)s?`

// technical are words of software, and code between backticks.
var technical = regexp.MustCompile("(?i)`|\\b(?:" + work + `|handler|function|method|type|class|struct|interface|component|` +
	`fixture|helper|queue|worker|` +
	`commit|branch|pull request|merge|migration|flag|setting|config\w*|secret|timestamp|query|queries|request|response|header|` +
	`cookie|session|token|cache|` +
	`lock|deadlock|race|thread|goroutine|process|memory|pointer|buffer|pipe|connection|pool|socket|proxy|timeout|retry|retries|bug|` +
	`error|crash\w*|failure|` +
	`fault|issue|exception|callback|loop|variable|parameter|field|column|row|index|schema|key|id|url|path|folder|director(?:y|ies)|` +
	`parser|` +
	`compiler|linker|driver|dependenc(?:y|ies)|import|export|upload|download|deploy\w*|container|script|regex|regular expression|` +
	`string|list|array|map|value|default|option|feature|name|naming|convention|format|event|message|record|transaction|` +
	`certificate|password|permission|lease|snapshot|unlock|env\w*|timer|shader|import|flaky|layout|logging|logged|stored|stdout|` +
	`stderr)s?\b`)

// actor is what a decision has: people, or an option.
var actor = regexp.MustCompile(`(?i)\b(?:we|we'\w+|i|i'\w+|let's|our|my|us|team|user|customer|client|decision|decided|option|` +
	`approach|plan|choice|` +
	`conclusion|going with|from now on|for now|no new)\b|^(?:use|keep|drop|prefer|avoid|rather than|instead of) `)

// required is what a sentence of a type must have beside its cues.
var required = map[Type]*regexp.Regexp{Decision: actor, Pattern: technical, Solution: technical, Context: technical}

// cues are those of each type, in English. A sentence in another language has none.
var cues = map[Type][]cue{
	Decision: {
		cueOf(1, people+`(?:'ve| have| has| had)? (?:all |both |finally )?(?:decided|agreed|settled|opted|chose|chosen|concluded)\b`,
			`\b(?:the|my|our|final) (?:decision|conclusion|choice|verdict) (?:is|was)\b`, `^decisions?:`, `\bgoing with\b`,
			`\b(?:let'?s|let us|we(?:'ll| will| should)|i(?:'ll| will)) (?:go with|stick (?:with|to)|stay with|settle (?:on|for))\b`,
			people+` (?:ended up|end up) (?:using|picking|choosing|with)\b`, people+` (?:picked|went with|ruled out) (?:the|a|one|it|`+
				`this)\b`),
		cueOf(0.8, `\b(?:we're|we are|i'm|i am) (?:dropping|choosing|picking|replacing|moving (?:to|away)|switching to|not going to|`+
			`going to use)\b`,
			people+` (?:prefers?|recommend|'d rather|would rather)\b`, `\bi'd rather\b`,
			`\b(?:from now on|for now,? we|until further notice)\b`,
			`\bthe plan is (?:to|that)\b`, `\bin favou?r of\b`, `\bin exchange for\b`, `\bis not worth (?:its|the|it)\b`,
			`\bwe (?:stay|stick|accept|keep (?:both|using)|postpone|defer|won't|will not)\b`, `\b(?:no new|without a new) dependenc`),
		cueOf(0.5, `\b(?:we|i)(?:'ll| will) (?:use|keep|drop|remove|cache|store|write|replace|need no|subscribe|reject)\b`,
			`\b(?:we're|we are|i'm|i am) going to (?:split|move|write|keep|replace|drop|add|store|put)\b`,
			`\b(?:option|approach|variant|plan) (?:[a-d]|\d)\b`,
			`\b(?:first|second|third|other|simpler|cheaper|smaller) (?:option|approach|one|plan|library)\b`,
			`^(?:use|keep|drop|prefer|avoid|choose) `),
		cueOf(0.35, `\brather than\b|\binstead of\b|\baccept\b`),
		cueOf(0.25, `\bbecause\b|\bsince\b|\bso that\b|\bso the\b`, `\b(?:not|and not) \w+`, `\bfor now\b`),
	},
	Pattern: {
		cueOf(1, `\b(?:by|the|our|naming|existing|usual) (?:conventions?|scheme)\b`,
			`\bas a rule\b|\brule of thumb\b|\bcommon practice\b|\bbest practice\b`,
			`\bfollow(?:s|ing)? the (?:pattern|convention|same|imperative|existing)`, `\bwhenever we\b`,
			`\bwe (?:usually|always|never|generally|typically|tend to)\b`,
			`\bin this (?:code ?base|repo(?:sitory)?|project|package|suite|module)\b`),
		cueOf(0.7, `^(?:all|every|each|new|public|internal|private)(?: \w+){1,4} (?:\w+s|must|should|has|have|is|are|need|go|get|use|`+
			`live)\b`,
			`\bmust (?:only|always|never|not|stay|begin|start|go)\b`,
			`\bnever\b.*[;,]|^never\b|^always\b|, never\b|\b(?:are|is) (?:never|always|only)\b`,
			`\b(?:one|a single) [\w ]{1,30} per \w+`, `\balways (?:go|goes|use|uses|through|via|in)\b`),
		cueOf(0.5, `\b(?:live|lives|go|goes|belong|belongs|happens?) (?:in|into|through|next to|at|only|always)\b`,
			`\b(?:begins?|starts?|ends?) with (?:a|the|its|an)\b`, `\bthe (?:repo(?:sitory)?|project|code ?base) uses\b`,
			`\bwe (?:prefix|wrap|keep one|name|put|group|tag|write|inject)\b`,
			`^(?:the )?(?:\w+ )?(?:tests?|handlers?|helpers?|components?|errors?|commit messages?|names?|naming|fixtures?|functions?|`+
				`queries|modules?|secrets?|settings?|branch(?: name)?s?)\b`),
		cueOf(0.25, `\bso that\b|\binstead of\b|\brather than\b|\bnever\b|\balways\b|\bonly\b`, `\bmust\b|\bshould\b`),
	},
	Solution: {
		cueOf(1, `\broot cause\b|\bthe (?:actual |real )?(?:cause|culprit) (?:of|was|is)\b`,
			`\b(?:was|were) (?:caused by|due to)\b|\bcame from\b|\bstems? from\b`,
			`\bthe reason\b.*\b(?:broke|fail|crash|slow|wrong)`, `\b(?:work ?around|workaround)\b`,
			`\bthe (?:actual |real |right |proper )?fix (?:is|was)\b`,
			`\bi(?:'ve| have)? (?:fixed|solved|resolved)\b`, `\b(?:fixed|solved|resolved|repaired) by\b`,
			`\b(?:is|are) gone\b|\bdisappeared\b|\bwent away\b|\bworks again\b|\bno longer (?:happens|fails|crashes|occurs|leaks|`+
				`hangs)\b|\bgot rid of\b`,
			`\b(?:failed|fails|failing|broke|breaks|crashed|crashes|hung|hangs|slow|flaky|leaked|timed out|blank|jumped|`+
				`wrong) (?:\w+ ){0,4}because\b`),
		cueOf(0.75, `\bturns? out\b|\bturned out\b|\bfound it:`,
			`\bthe (?:problem|bug|issue|error|failure|crash|leak|mistake)s? (?:was|is|were|are|came|lies|lay)\b`,
			`\b(?:fixed|solved|solves|resolved|repaired) (?:that|it|this|the)\b`, `\bbrought\b.*\bdown\b`,
			`, and .* (?:fixed|solved|resolved|works)\b`),
		cueOf(0.4, `\b(?:failed|crash\w*|leak\w*|deadlock\w*|broken?|race|timed out|duplicate|stale|spike|flaky|mismatch|null pointer|`+
			`did not match)\b`,
			`\b(?:fix|fixes|fixed|solved|resolved|repaired)\b`),
		cueOf(0.25, `\bbecause\b|\bso i\b|\bnow that\b|\bafter (?:i|the|we)\b|\bmakes the\b|\bto avoid\b`),
	},
	Context: {
		cueOf(0.9, `\bwe (?:only|still|currently|also)? ?(?:support|deploy|host|run|are (?:still )?on|ship|have (?:about|only|no))\b`,
			`\bi(?:'m| am) (?:working on|building|writing|maintaining|new to)\b`, `\bi have no (?:experience|access|control)\b`,
			`\bi want the \w+ to\b`,
			`\bthe (?:deadline|budget)\b|\bmy budget\b`, `^(?:our|my) (?:\w+ ){0,3}?`+work+`\b`,
			`^this (?:project|service|app|application|library|repo|repository|endpoint|tool|system|product|team)\b`),
		cueOf(0.7, `^the (?:\w+ ){0,2}?`+work+` (?:has|have|needs?|runs?|consists?|keeps?)\b`,
			`\b(?:is|are) (?:\w+ )?(?:written|built|hosted|deployed|stored|handled|rate.limited|maintained|refreshed|kept|called|located) `+
				`(?:by|in|on|for|from|every|to)\b|\bused by\b`),
		cueOf(0.6, `^(?:the|these) (?:\w+ ){0,2}?`+work+`\b(?: \w+){0,2} (?:is|are|had|works?|may|must|can|will|upload\w*|was|left)\b`,
			`\bthere (?:is|are) (?:no|about|only|currently|around)\b`, `^only \w+ can\b`, `\bfor (?:legal|historical) reasons\b`,
			`\b(?:at the moment|as of now)\b`),
		cueOf(0.25, `\b(?:a|per|each|every) (?:second|minute|hour|day|night|week|month|year|sunday|job)\b`,
			`\b\d+\b|\b(?:two|three|four|five|ten|sixty|thirty|hundred|thousand|million)s?\b`, `\b(?:our|my)\b`, `\bof one\b|\bbecause of\b`,
			`\b(?:runs on|written in|built with|no longer|without|currently|still)\b`),
	},
}

// noise are sentences that only accompany the work: announcements, questions, instructions, offers, conditions.
var noise = regexp.MustCompile(`(?i)(?:\?["')]*$|^all (?:\w+ )?(?:tests|checks) (?:now |still )?(?:pass|compile|are)|^(?:now|` +
	`next|first|then|ok(?:ay)?|let me|let's (?:see|look|start|check|try|use an|run|begin)|` +
	`i'm (?:now )?(?:checking|pushing|doing|making|running|rerunning|reading|looking|applying|testing|updating|verifying|waiting|getting)|` +
	`i'll (?:now|check|look|read|run|start|search|also)|i will (?:now|look|check)|i need to|here(?:'s| is| are)\b|can you|could you|` +
	`you (?:can|could|should|may|might)\b|running|reading|looking|checking|sorry|thanks?|thank you|sure|great|good|` +
	`to (?:do|use|run|see) (?:this|that|it)\b|if |when you|assuming|make sure|note\b|remember\b|keep in mind|in (?:conclusion|` +
	`addition|summary)|overall|` +
	`please (?:note|do not|don't|make|let|keep in)|this (?:section|means|includes|may|can|could|is)\b|in this (?:section|article|` +
	`example)))|` +
	`\b(?:imagine|explain|describe) \w+|\byour\b|` +
	`\bto (?:look|check|read|search|see|open|run|try) (?:at|the|for|it|again)\b|\bwill look at\b|:$`)

// enough is the least strength of a moment, and weak that of a sentence that may be one. minWords and maxWords bound
// its length.
const (
	enough   = 0.7
	weak     = 0.35
	minWords = 5
	maxWords = 50
)

// classify returns the type whose cues a sentence has most of, and their strength from 0 to 1; "" if that is not
// enough.
func classify(s string, enough float64) (best Type, strength float64) {
	s = strings.ReplaceAll(s, "’", "'")
	if n := sentence.Count(s); n < minWords || n > maxWords || noise.MatchString(s) {
		return "", 0
	}
	for _, kind := range order {
		if !required[kind].MatchString(s) {
			continue
		}
		sum := 0.0
		for _, c := range cues[kind] {
			if c.words.MatchString(s) {
				sum += c.strength
			}
		}
		if sum > strength {
			best, strength = kind, sum
		}
	}
	if strength < enough {
		return "", 0
	}
	return best, min(strength, maxStrength) / maxStrength
}

// maxStrength is the strength of a sentence that says beyond doubt what it is.
const maxStrength = 1.5

// order decides between types of equal strength: what is more specific comes first.
var order = []Type{Solution, Decision, Pattern, Context}
