package listing

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	ctxfolder "github.com/ctxdir/ctxdir/context"
	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/origin"
	"github.com/google/uuid"
)

// Orders of a list.
const (
	OrderUpdated = "updated" // most recently changed first
	OrderCreated = "created" // newest first
	OrderSize    = "size"    // largest first
	OrderTitle   = "title"   // by the alphabet, without regard to case
)

// AnyKind is the Kind of [ListOptions] that stands for every kind, and for none.
const AnyKind = ctxfolder.AnyKind

// ListOptions select contexts for a list, and order them. The zero value lists all contexts without a kind.
type ListOptions struct {
	Labels       map[string]string // the context has all of them
	Kind         string            // AnyKind for all
	Title        string            // a pattern of package path, matched without regard to case; * matches / too
	Model        string            // config.model_id
	Tool         string            // the label "tool"
	Since, Until time.Time         // Since <= UpdatedAt < Until
	Order        string            // OrderUpdated if it is empty; contexts that are equal in it are ordered by id
	Reverse      bool
	Limit        int    // 0 for no limit
	Cursor       string // of a row of an earlier list in the same order: the list continues after that row
}

// chooser returns a function that reports whether a row is in the list. It fails with [engine.ErrInvalid].
func (o *ListOptions) chooser() (func(row *Summary) bool, error) {
	if o.Order == "" {
		o.Order = OrderUpdated
	}
	if o.Order != OrderUpdated && o.Order != OrderCreated && o.Order != OrderSize && o.Order != OrderTitle {
		return nil, fmt.Errorf("%w: unknown order %q; use %s, %s, %s or %s",
			engine.ErrInvalid, o.Order, OrderUpdated, OrderCreated, OrderSize, OrderTitle)
	}
	if _, err := path.Match(o.Title, ""); err != nil {
		return nil, fmt.Errorf("%w: %q is not a valid title pattern", engine.ErrInvalid, o.Title)
	}
	if o.Limit < 0 {
		return nil, fmt.Errorf("%w: the limit %d is negative", engine.ErrInvalid, o.Limit)
	}
	after, err := o.position()
	if err != nil {
		return nil, err
	}
	return func(row *Summary) bool { return o.selects(row) && (after == nil || o.compare(after, row) < 0) }, nil
}

// selects reports whether a row has what the options ask for.
func (o *ListOptions) selects(row *Summary) bool {
	return o.selectsMetadata(row.Labels, row.Kind, row.Title, row.Model) &&
		(o.Since.IsZero() || !row.UpdatedAt.Before(o.Since)) && (o.Until.IsZero() || row.UpdatedAt.Before(o.Until))
}

// selectsMetadata reports whether metadata has what the options ask for. A commit notes changes of it: see [engine.ChangesFile].
func (o *ListOptions) selectsMetadata(labels map[string]string, kind, title, model string) bool {
	for key, value := range o.Labels {
		if now, ok := labels[key]; !ok || now != value {
			return false
		}
	}
	if o.Kind != AnyKind && kind != o.Kind || o.Model != "" && model != o.Model || o.Tool != "" && labels[origin.ToolLabel] != o.Tool {
		return false
	}
	return o.Title == "" || matchTitle(o.Title, title)
}

// matchTitle matches with the patterns of package path, for which a title is one element.
func matchTitle(pattern, title string) bool {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "/", "\x00") }
	ok, err := path.Match(plain(pattern), plain(title))
	return ok && err == nil
}

// compare orders rows. Only equal contexts are equal.
func (o *ListOptions) compare(a, b *Summary) int {
	n := 0
	switch o.Order {
	case OrderUpdated:
		n = b.UpdatedAt.Compare(a.UpdatedAt)
	case OrderCreated:
		n = b.CreatedAt.Compare(a.CreatedAt)
	case OrderSize:
		n = cmp.Compare(b.Bytes, a.Bytes)
	case OrderTitle:
		n = cmp.Compare(titleKey(a.Title), titleKey(b.Title))
	}
	if n == 0 {
		n = strings.Compare(string(a.ID[:]), string(b.ID[:]))
	}
	if o.Reverse {
		return -n
	}
	return n
}

// titleKey is what orders titles: their beginning, so that a cursor stays short.
func titleKey(title string) string {
	title = strings.ToLower(title)
	return strings.ToValidUTF8(title[:min(len(title), 256)], "")
}

// cursor returns the place of a row in the list: the order, the value by which it orders, and the id.
func (o *ListOptions) cursor(row *Summary) string {
	var value []byte
	switch o.Order {
	case OrderUpdated:
		value, _ = row.UpdatedAt.UTC().MarshalBinary() // fails only for odd time zones
	case OrderCreated:
		value, _ = row.CreatedAt.UTC().MarshalBinary()
	case OrderSize:
		value = fmt.Append(nil, row.Bytes)
	case OrderTitle:
		value = []byte(titleKey(row.Title))
	}
	b := append([]byte{o.Order[0]}, row.ID[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, value...))
}

// position returns the row after which the list continues, nil for the beginning. It has what compare needs.
func (o *ListOptions) position() (*Summary, error) {
	if o.Cursor == "" {
		return nil, nil
	}
	var row Summary
	b, err := base64.RawURLEncoding.DecodeString(o.Cursor)
	if err == nil && len(b) < 1+len(row.ID) {
		err = errors.New("truncated")
	}
	if err == nil && b[0] != o.Order[0] {
		err = errors.New("it belongs to a list in another order")
	}
	if err == nil {
		value := b[1+len(row.ID):]
		row.ID = uuid.UUID(b[1 : 1+len(row.ID)])
		switch o.Order {
		case OrderUpdated:
			err = row.UpdatedAt.UnmarshalBinary(value)
		case OrderCreated:
			err = row.CreatedAt.UnmarshalBinary(value)
		case OrderSize:
			_, err = fmt.Sscan(string(value), &row.Bytes)
		case OrderTitle:
			row.Title = string(value)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: cursor %q: %w", engine.ErrInvalid, o.Cursor, err)
	}
	return &row, nil
}
