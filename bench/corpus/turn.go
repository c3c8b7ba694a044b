package corpus

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Turn is the Go value every engine's messages are decoded to: what an agent's framework looks at, and the
// content left as it is.
type Turn struct {
	Type      string `json:"type"`
	Role      string `json:"role"`
	Timestamp string `json:"timestamp"`
	Message   struct {
		Role    string         `json:"role"`
		Model   string         `json:"model"`
		Content jsontext.Value `json:"content"`
	} `json:"message"`
	Content jsontext.Value `json:"content"`
}

// Real data repeats keys and holds lone surrogates.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Decode decodes a body. It is the same for every engine, so that a row compares engines and not JSON decoders.
// A body of another shape ("message" a text, say) is checked to be JSON and given as it is.
func Decode(body []byte) (Turn, error) {
	var t Turn
	err := json.Unmarshal(body, &t, lenient)
	if err == nil {
		return t, nil
	}
	var v jsontext.Value
	if err := json.Unmarshal(body, &v, lenient); err != nil {
		return Turn{}, err
	}
	return Turn{Content: v}, nil
}
