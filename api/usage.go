package api

import (
	"net/http"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/usage"
)

const (
	usageRows    = 200 // by default
	maxUsageRows = 10_000
)

type usageReport struct {
	Rows     []record.Usage      `json:"rows"`
	LeftOut  int                 `json:"left_out"` // rows beyond the limit
	Sum      record.UsageSummary `json:"sum"`      // of all rows
	Failures []contextFailure    `json:"failures,omitempty"`
}

// getUsage sums up the tokens and the cost of model calls, of all contexts or of some.
func (x *Server) getUsage(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	v := x.store.of(r)
	ids, err := v.contextsOf(r.Context(), p)
	if err != nil {
		return err
	}
	o := ctxdir.ListOptions{Order: ctxdir.OrderCreated, Reverse: true, Labels: labelsOf(p)}
	if len(ids) > 0 {
		o.Kind = "*"
	}
	report := usage.Report{From: p.time("since"), To: p.time("until"), Zone: p.zone("time_zone"), Charges: &usage.Charges{}}
	prices, month := usage.PublishedPrices()
	report.Charges.Lists = []usage.Prices{prices}
	keys := make([]string, len(usage.Keys))
	for i, key := range usage.Keys {
		keys[i] = string(key)
	}
	report.By = usage.Key(oneOf(p, "by", keys...))
	limit := p.limit(usageRows, maxUsageRows)
	if err := p.done(); err != nil {
		return err
	}
	index, err := x.index.open(r.Context())
	if err != nil {
		return err
	}
	counter := usage.NewCounter(v.s)
	counter.UseIndex(index)
	answer := usageReport{Rows: []record.Usage{}}
	counted := 0
	for sum, err := range v.list(r.Context(), o) {
		if err != nil {
			return err
		}
		if len(ids) > 0 && !slices.Contains(ids, sum.ID) {
			continue
		}
		err = v.use(r.Context(), sum.ID, func(c *ctxdir.Context) error { return report.Add(r.Context(), counter, c) })
		switch {
		case r.Context().Err() != nil:
			return r.Context().Err()
		case err != nil:
			answer.Failures = append(answer.Failures, contextFailure{"failed", sum.ID.String(), record.Problem(err)})
		default:
			counted++
		}
	}
	rows := report.Rows()
	answer.LeftOut = max(len(rows)-limit, 0)
	for _, row := range rows[:len(rows)-answer.LeftOut] {
		answer.Rows = append(answer.Rows, record.OfUsage(report.By, row))
	}
	answer.Sum = record.OfReport(&report, counted, month)
	return sendDocument(w, http.StatusOK, answer)
}
