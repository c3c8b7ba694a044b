package writer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
)

const largest = 200 << 10 // bytes of a payload

// Sum is of a message's body, as short as an account wants it.
type Sum string

// SumOf returns the sum of a body.
func SumOf(body []byte) Sum {
	sum := sha256.Sum256(body)
	return Sum(hex.EncodeToString(sum[:8]))
}

// said is a body, and no two are equal: the importer takes histories that begin alike for one. What the writer alone
// shows, it may replace.
type said struct {
	Role    string `json:"role"`
	Number  uint32 `json:"number"`
	By      string `json:"by"`
	Alone   bool   `json:"alone"`
	Content []any  `json:"content"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type image struct {
	Type   string `json:"type"`
	Source source `json:"source"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

var words = strings.Fields(`
	the a of and to in it was said went river stone light house garden never always again slowly quickly paper window
	morning evening table letter name answer question remember forget open close begin end many few small large old new`)

// body gives s content: mostly text, of any size up to 200 KB with small ones more often, and sometimes an image.
func body(random *rand.Rand, s said) json.RawMessage {
	s.Number = random.Uint32()
	size := int(math.Exp(random.Float64()*math.Log(largest))) - 1
	if random.IntN(8) == 0 {
		data := make([]byte, size*3/4)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		s.Content = []any{image{"image", source{"base64", "image/png", base64.StdEncoding.EncodeToString(data)}}}
	} else {
		var b strings.Builder
		for b.Len() < size {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		s.Content = []any{text{"text", b.String()}}
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and structs can be marshalled
	}
	return b
}
