package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir/internal/plain"
	tokens "github.com/ctxdir/ctxdir/usage"
	"github.com/spf13/cobra"
)

// priceLists charge steps whose tools record no cost: first with the prices of a file, then with the published ones.
type priceLists struct {
	file  string
	month string // of the published prices
	tokens.Charges
}

func (p *priceLists) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.file, "prices", "", "prefer the prices of models in `FILE` to the published ones")
}

func (p *priceLists) load() error {
	published, month := tokens.PublishedPrices()
	p.Lists, p.month = []tokens.Prices{published}, month
	if p.file == "" {
		return nil
	}
	f, err := os.Open(p.file)
	if err != nil {
		return err
	}
	defer f.Close()
	own, err := tokens.ReadPrices(f)
	if err != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}
	p.Lists = []tokens.Prices{own, published}
	return nil
}

// maxUnpriced bounds the models that a note names.
const maxUnpriced = 5

// notes says what part of the steps and tokens a cost is of, what it is computed from, and which models have no price.
func (p *priceLists) notes(a *app, all *tokens.Sum) {
	if all.Computed > 0 {
		from := "list prices of " + monthText(p.month)
		if p.file != "" {
			from = plain.OneLine(p.file) + " and " + from
		}
		a.note("the cost of %s of the steps is computed from %s", plain.Percent(all.Computed, all.Steps), from)
	}
	if all.Unpriced == 0 {
		return
	}
	names := p.Unpriced()
	rest := max(len(names)-maxUnpriced, 0)
	text := make([]string, 0, maxUnpriced+1)
	for _, name := range names[:len(names)-rest] {
		text = append(text, plain.OneLine(cmp.Or(name, "(unknown)")))
	}
	if rest > 0 {
		text = append(text, fmt.Sprintf("%d more", rest))
	}
	a.note("the cost is that of %s of the steps and %s of the tokens; no price for %s", plain.Percent(all.Steps-all.Unpriced, all.Steps),
		plain.Percent(all.Total-all.UnpricedTokens, all.Total), strings.Join(text, ", "))
}

// monthText is a month such as 2026-07 in words.
func monthText(month string) string {
	at, err := time.Parse("2006-01", month)
	if err != nil {
		return month
	}
	return at.Format("January 2006")
}
