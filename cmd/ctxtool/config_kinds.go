package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/dustin/go-humanize"
)

// storeSetting is a setting of a store. An empty text is its default.
type storeSetting struct {
	name  string
	value func(s *ctxdir.Settings) any
	show  func(s *ctxdir.Settings) string
	parse func(text string, s *ctxdir.Settings) error
}

// numberSetting is a number. An empty text sets it to ifEmpty, 0 counts as ifZero.
func numberSetting(name string, of func(*ctxdir.Settings) *int64, ifEmpty, ifZero int64) storeSetting {
	value := func(s *ctxdir.Settings) int64 { return cmp.Or(*of(s), ifZero) }
	return storeSetting{
		name,
		func(s *ctxdir.Settings) any { return value(s) },
		func(s *ctxdir.Settings) string { return strconv.FormatInt(value(s), 10) },
		func(text string, s *ctxdir.Settings) error { return parseNumber(text, ifEmpty, of(s)) },
	}
}

// sizeSetting is a size in bytes; 0 counts as ifZero.
func sizeSetting(name string, of func(*ctxdir.Settings) *int64, ifZero int64) storeSetting {
	value := func(s *ctxdir.Settings) int64 { return cmp.Or(*of(s), ifZero) }
	return storeSetting{
		name,
		func(s *ctxdir.Settings) any { return value(s) },
		func(s *ctxdir.Settings) string { return sizeText(value(s)) },
		func(text string, s *ctxdir.Settings) error {
			*of(s) = 0
			if text == "" {
				return nil
			}
			n, err := humanize.ParseBytes(text)
			if err != nil || n == 0 || n > math.MaxInt64 {
				return fmt.Errorf("%q is not a size, such as 100MB", text)
			}
			*of(s) = int64(n)
			return nil
		},
	}
}

// sizeText is a size in the unit in which it is round.
func sizeText(n int64) string {
	if n%1_000_000 == 0 {
		return humanize.Bytes(uint64(n))
	}
	return plain.Size(n)
}

// durationSetting is a time; 0 counts as ifZero.
func durationSetting(name string, of func(*ctxdir.Settings) *time.Duration, ifZero time.Duration) storeSetting {
	value := func(s *ctxdir.Settings) int64 { return int64(cmp.Or(*of(s), ifZero) / time.Second) }
	return storeSetting{
		name,
		func(s *ctxdir.Settings) any { return value(s) },
		func(s *ctxdir.Settings) string { return hours(value(s)) },
		func(text string, s *ctxdir.Settings) error { return parseDuration(text, of(s)) },
	}
}

// nameSetting is one of some names, the first one by default.
func nameSetting(name string, of func(*ctxdir.Settings) *string, names ...string) storeSetting {
	value := func(s *ctxdir.Settings) string { return cmp.Or(*of(s), names[0]) }
	return storeSetting{
		name,
		func(s *ctxdir.Settings) any { return value(s) },
		value,
		func(text string, s *ctxdir.Settings) error {
			switch {
			case text == "" || slices.Contains(names, text):
			default:
				return fmt.Errorf("%q is not one of: %s", text, strings.Join(names, ", "))
			}
			*of(s) = text
			return nil
		},
	}
}

// hours is a number of seconds in hours, if it is a number of hours.
func hours(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	switch {
	case d == 0:
		return "0"
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return d.String()
}

func parseDuration(text string, into *time.Duration) error {
	*into = 0
	if text == "" || text == "0" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration, such as 720h", text)
	}
	*into = d
	return nil
}

func parseNumber(text string, ifEmpty int64, into *int64) error {
	*into = ifEmpty
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 && ifEmpty == 0 {
		return fmt.Errorf("%q is not a number", text)
	}
	*into = n
	return nil
}
