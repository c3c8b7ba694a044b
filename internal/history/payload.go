package history

import (
	"encoding/json"
	"fmt"
)

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
