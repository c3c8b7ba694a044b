package moment

import (
	"regexp"
	"strings"

	"github.com/ctxdir/ctxdir/internal/sentence"
	"github.com/ctxdir/ctxdir/transcript"
)

var (
	heredoc = regexp.MustCompile(`<<-?\s*['"]?(\w+)['"]?\n`)
	quoted  = regexp.MustCompile(`(?:-[a-z]*m|--message)[= ]\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')`)
)

// commitOf returns the message of the commit that a call of a shell makes, "" if it makes none or the call does not say it.
func commitOf(call *transcript.Part) string {
	_, command, ok := strings.Cut(call.Summary(), "git commit ")
	if !ok {
		return ""
	}
	if at := heredoc.FindStringSubmatchIndex(command); at != nil {
		text, _, ok := strings.Cut(command[at[1]:], "\n"+command[at[2]:at[3]])
		if ok {
			return strings.TrimSpace(text)
		}
	}
	command, _, _ = strings.Cut(command, "&& ")
	var paragraphs []string
	for _, m := range quoted.FindAllStringSubmatch(command, -1) {
		paragraphs = append(paragraphs, strings.ReplaceAll(m[1]+m[2], `\"`, `"`))
	}
	return strings.TrimSpace(strings.Join(paragraphs, "\n\n"))
}

var (
	conventional = regexp.MustCompile(`^(\w+)(?:\([^)]*\))?!?:\s+`)
	mending      = words(`^fix\w*\b`)
	housework    = words(`^(?:docs?|tests?|style|ci|build|chore|release|merge|wip|bump)\b`)
)

// committed is the first paragraph of the message of a commit below its subject, if it says why.
func (t *turn) committed() []find {
	subject, body, _ := strings.Cut(t.Text.Text, "\n")
	if housework().MatchString(subject) {
		return nil
	}
	passages := sentence.Outline(body)
	if len(passages) == 0 || passages[0].Item || passages[0].Title {
		return nil
	}
	why := passages[0].Text
	if n := sentence.Count(why); n < minWords || n > maxCause || count(straight(why), contrast, reason) == 0 {
		return nil
	}
	kind := Decision
	if mending().MatchString(subject) {
		kind = Solution
	}
	return []find{t.find(kind, enough+1, conventional.ReplaceAllString(subject, "")+"\n"+why, "")}
}
