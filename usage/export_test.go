package usage

import (
	"encoding/json"
	"fmt"

	"github.com/ctxdir/ctxdir"
)

// Decode returns the data of a digest in brief, and as encoded anew.
func Decode(data []byte) (brief string, again []byte, err error) {
	d, err := decodeDigest(data)
	return d.brief(), d.encode(), err
}

// Brief returns what a scan has of a message.
func Brief(m *ctxdir.Message) string {
	d := recordsAndPrompt(m, func() (json.RawMessage, error) { return nil, nil })
	d.estimate(m)
	return d.brief()
}

func (d *digest) brief() string {
	at := d.at
	d.at = at.UTC()
	return fmt.Sprintf("%+v", *d)
}
