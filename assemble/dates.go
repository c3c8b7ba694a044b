package assemble

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/search"
)

const months = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|` +
	`nov(?:ember)?|dec(?:ember)?`

// The forms of dates in a query: 2026-05-08, 8 May 2026, May 8, 2026, May 2026, in May, and 2026.
var (
	isoDate   = regexp.MustCompile(`\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b`)
	dayMonth  = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? (` + months + `)\b(?:,? ((?:19|20)\d\d)\b)?`)
	monthDay  = regexp.MustCompile(`(?i)\b(` + months + `) (\d{1,2})(?:st|nd|rd|th)?\b(?:,? ((?:19|20)\d\d)\b)?`)
	monthYear = regexp.MustCompile(`(?i)\b(` + months + `),? (?:of )?((?:19|20)\d\d)\b`)
	onlyMonth = regexp.MustCompile(`\b(January|February|March|April|June|July|August|September|October|November|December)\b|` +
		`\b(?:in|of|during|since|until|by|last|this) (May)\b`)
	onlyYear = regexp.MustCompile(`\b((?:19|20)\d\d)\b`)
)

// datesIn returns the dates in a query.
func datesIn(query string) (all []search.Date) {
	// Each form takes its text out of the query, the longest one first.
	find := func(form *regexp.Regexp, date func(groups []string) search.Date) {
		query = form.ReplaceAllStringFunc(query, func(text string) string {
			all = append(all, date(form.FindStringSubmatch(text)))
			return " "
		})
	}
	find(isoDate, func(g []string) search.Date {
		return search.Date{Year: number(g[1]), Month: number(g[2]), Day: number(g[3])}
	})
	find(dayMonth, func(g []string) search.Date {
		return search.Date{Year: number(g[3]), Month: month(g[2]), Day: number(g[1])}
	})
	find(monthDay, func(g []string) search.Date {
		return search.Date{Year: number(g[3]), Month: month(g[1]), Day: number(g[2])}
	})
	find(monthYear, func(g []string) search.Date { return search.Date{Year: number(g[2]), Month: month(g[1])} })
	find(onlyMonth, func(g []string) search.Date { return search.Date{Month: month(g[1] + g[2])} })
	find(onlyYear, func(g []string) search.Date { return search.Date{Year: number(g[1])} })
	const most = 4
	all = distinct(all)
	return all[:min(len(all), most)]
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func month(name string) int {
	at := strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(name[:3]))
	return at/3 + 1
}

// timeOf returns the message's own time, or that of its commit.
func timeOf(m *ctxdir.Message) time.Time {
	if m.CreatedAt.IsZero() {
		return m.StoredAt.UTC()
	}
	return m.CreatedAt.UTC()
}
