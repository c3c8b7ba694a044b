package usage

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// Key is what a [Report] sums up by.
type Key string

// Keys of a report.
const (
	ByModel   Key = "model"
	ByProject Key = "project" // the context's label "project"
	ByContext Key = "context"
	ByDay     Key = "day"
	ByPrompt  Key = "prompt"
	ByMessage Key = "message"
	ByStep    Key = "step"
)

// Keys are all of them.
var Keys = []Key{ByModel, ByProject, ByContext, ByDay, ByPrompt, ByMessage, ByStep}

// Report sums up the steps of contexts, in all and by a key.
type Report struct {
	By       Key
	From, To time.Time      // it counts steps at From or later and before To; zero for no bound
	Zone     *time.Location // in which days begin; nil for local time
	Charges  *Charges       // of steps whose tools record no cost; nil leaves them unpriced
	// Each, unless nil, receives every row of [ByStep], of which the report then keeps none.
	Each func(*Row) error

	Sum // of all steps

	rows   []*Row
	at     map[place]*Row
	prompt uuid.UUID
	text   string // of the prompt
}

// place is what distinguishes rows: the same message may be in several contexts.
type place struct {
	context uuid.UUID
	key     string
}

// Row is the sum of the steps with one key.
type Row struct {
	Key string // the id of a context, prompt or message; "" for steps that have none
	// Context, Branch, Prompt and At are those of the first step of a prompt, a message or a step.
	Context uuid.UUID
	Branch  string
	Prompt  uuid.UUID
	At      time.Time
	// Message is that of a message or step, at Position; uuid.Nil otherwise.
	Message  uuid.UUID
	Position int64
	Model    string // of a step
	Text     string // the beginning of the prompt, or the title of the context
	Sum
}

// Add counts the steps of a context. Contexts are added the oldest first: a fork repeats the records of an older one.
func (r *Report) Add(ctx context.Context, counter *Counter, c *ctxdir.Context) error {
	m := c.Metadata()
	for step, err := range counter.Steps(ctx, c) {
		if err != nil {
			return err
		}
		if !r.From.IsZero() && step.At.Before(r.From) || !r.To.IsZero() && !step.At.Before(r.To) {
			continue
		}
		if r.Charges != nil {
			r.Charges.Charge(&step)
		}
		r.Sum.Add(&step)
		row, err := r.row(ctx, c, m, &step)
		if err != nil {
			return err
		}
		row.Add(&step)
		if r.By == ByStep && r.Each != nil {
			if err := r.Each(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// row returns the row of a step.
func (r *Report) row(ctx context.Context, c *ctxdir.Context, m *ctxdir.Metadata, step *Step) (row *Row, err error) {
	at := step.At.In(cmp.Or(r.Zone, time.Local))
	row = &Row{}
	switch r.By {
	case ByModel:
		row.Key = step.Model
	case ByProject:
		row.Key = m.Labels["project"]
	case ByContext:
		row.Key, row.Text = step.Context.String(), m.Title
	case ByDay:
		row.Key = at.Format(time.DateOnly)
	case ByStep:
		row.Model = step.Model
		fallthrough
	case ByMessage:
		row.Message, row.Position, row.Key = step.Message, step.Position, text(step.Message)
		fallthrough
	case ByPrompt:
		row.Context, row.Branch, row.Prompt, row.At = step.Context, step.Branch, step.Prompt, at
		if r.By == ByPrompt {
			row.Key = text(step.Prompt)
		}
	}
	if r.By != ByStep {
		if was := r.at[place{row.Context, row.Key}]; was != nil {
			return was, nil
		}
	}
	if row.Prompt != uuid.Nil {
		if r.prompt != step.Prompt { // most steps have that of the step before
			if r.text, err = PromptText(ctx, c, step); err != nil {
				return nil, err
			}
			r.prompt = step.Prompt
		}
		row.Text = r.text
	}
	if r.By == ByStep && r.Each != nil {
		return row, nil
	}
	if r.at == nil {
		r.at = map[place]*Row{}
	}
	r.at[place{row.Context, row.Key}] = row
	r.rows = append(r.rows, row)
	return row, nil
}

// text is an id, or "" for none.
func text(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// Rows returns the rows: of models, projects and contexts the largest total first, of days the earliest, and of others
// as they were counted.
func (r *Report) Rows() []*Row {
	rows := slices.Clone(r.rows)
	switch r.By {
	case ByModel, ByProject, ByContext:
		slices.SortStableFunc(rows, func(a, b *Row) int { return cmp.Compare(b.Total, a.Total) })
	case ByDay:
		slices.SortStableFunc(rows, func(a, b *Row) int { return strings.Compare(a.Key, b.Key) })
	case ByPrompt, ByMessage, ByStep:
	}
	return rows
}

// Charges charges steps whose tools record no cost, and knows the models for which there is no price.
type Charges struct {
	Lists    []Prices // the first that has a model counts
	unpriced map[string]int64
}

// Charge computes the cost of a step, see [Step.Charge].
func (x *Charges) Charge(step *Step) {
	for _, list := range x.Lists {
		step.Charge(list)
	}
	if step.Priced {
		return
	}
	if x.unpriced == nil {
		x.unpriced = map[string]int64{}
	}
	x.unpriced[step.Model] = plus(x.unpriced[step.Model], step.Total)
}

// Unpriced returns the models without a price, that of the most tokens first, "" for unknown ones.
func (x *Charges) Unpriced() []string {
	names := make([]string, 0, len(x.unpriced))
	for name := range x.unpriced {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(x.unpriced[b], x.unpriced[a]), strings.Compare(a, b))
	})
	return names
}
