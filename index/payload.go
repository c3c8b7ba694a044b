package index

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/ctxdir/ctxdir/internal/blob"
	"github.com/ctxdir/ctxdir/internal/journal"
)

// PayloadItem returns the record that commits a payload.
func PayloadItem(sum blob.Sum, payload []byte) journal.Item {
	b := append([]byte(payloadBlob), hex.EncodeToString(sum[:])...)
	if utf8.Valid(payload) {
		b = append(b, `","text":`...)
		text, _ := json.Marshal(string(payload)) // never fails
		b = append(b, text...)
	} else {
		b = append(b, `","base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, payload)
		b = append(b, '"')
	}
	return journal.Item{Kind: journal.Payload, Body: append(b, '}')}
}

// parsePayload returns the payload in the body of a record.
func parsePayload(b []byte) ([]byte, error) {
	var x struct {
		Text   *string `json:"text"`
		Base64 []byte  `json:"base64"`
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, fmt.Errorf("%w: payload record: %w", ErrDamaged, err)
	}
	if x.Text != nil {
		return []byte(*x.Text), nil
	}
	return x.Base64, nil
}

// HasPayload reports whether a log is known to have a payload. A message that refers to it then needs no record of it.
func (ix *Index) HasPayload(sum blob.Sum) (has bool) {
	_ = ix.view(func(s *state) {
		at, ok := s.payloads[sum]
		has = ok && at.log.IsThere() // others may have sealed it
	})
	return has
}
