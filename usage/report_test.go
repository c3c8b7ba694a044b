package usage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/usage"
)

// TestReport counts three calls of two models around midnight in Tokyo.
func TestReport(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	c := newContext(t, s, ctxdir.Metadata{Title: "Rain", Labels: map[string]string{"project": "/rain"}})
	midnight := time.Date(2026, 3, 1, 15, 0, 0, 0, time.UTC)
	tokyo := time.FixedZone("Tokyo", 9*3600)
	for i, body := range []string{
		`{"role":"user","content":"Is it raining?"}`,
		`{"role":"assistant","id":"chatcmpl-1","content":"a","model":"small","usage":{"prompt_tokens":1,"completion_tokens":1}}`,
		`{"role":"assistant","id":"chatcmpl-2","content":"b","model":"large","usage":{"prompt_tokens":20,"completion_tokens":10}}`,
		`{"role":"assistant","id":"chatcmpl-3","content":"c","model":"small","usage":{"prompt_tokens":3,"completion_tokens":3}}`,
	} {
		at := midnight.Add(time.Duration(i-2) * time.Hour)
		if _, err := c.Active().Append(ctx, ctxdir.Draft{Body: []byte(body), CreatedAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		r    usage.Report
		want string
	}{
		{usage.Report{By: usage.ByModel}, "large 1×30, small 2×8"},
		{usage.Report{By: usage.ByDay, Zone: tokyo}, "2026-03-01 1×2, 2026-03-02 2×36"},
		{usage.Report{By: usage.ByDay, Zone: time.UTC}, "2026-03-01 3×38"},
		{usage.Report{By: usage.ByProject}, "/rain 3×38"},
		{usage.Report{By: usage.ByContext}, c.ID().String() + " Rain 3×38"},
		{usage.Report{By: usage.ByPrompt, From: midnight}, "(prompt) Is it raining? 2×36"},
		{usage.Report{By: usage.ByModel, To: midnight}, "small 1×2"},
		{usage.Report{By: usage.ByStep, From: midnight, To: midnight.Add(time.Hour)}, "(message 2) Is it raining? 1×30"},
	} {
		r := test.r
		if err := r.Add(ctx, usage.NewCounter(s), c); err != nil {
			t.Fatal(err)
		}
		var rows []string
		var steps int64
		for _, row := range r.Rows() {
			key := row.Key
			switch {
			case r.By == usage.ByPrompt && key == row.Prompt.String():
				key = "(prompt)"
			case r.By == usage.ByStep && key == row.Message.String():
				key = fmt.Sprintf("(message %d)", row.Position)
			}
			rows = append(rows, strings.Join(strings.Fields(fmt.Sprintf("%s %s %d×%d", key, row.Text, row.Steps, row.Total)), " "))
			steps += row.Steps
		}
		if got := strings.Join(rows, ", "); got != test.want || steps != r.Steps {
			t.Errorf("by %s: %s, of %d steps; wanted %s", r.By, got, r.Steps, test.want)
		}
	}
	var each []string
	r := usage.Report{By: usage.ByStep, Charges: &usage.Charges{}, Each: func(row *usage.Row) error {
		each = append(each, row.Model)
		return nil
	}}
	if err := r.Add(ctx, usage.NewCounter(s), c); err != nil || strings.Join(each, " ") != "small large small" || len(r.Rows()) != 0 {
		t.Errorf("each: %q, %d rows kept, %v", each, len(r.Rows()), err)
	}
	if got := strings.Join(r.Charges.Unpriced(), " "); got != "large small" {
		t.Errorf("models without a price: %s", got)
	}
}
