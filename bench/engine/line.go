package engine

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/google/uuid"
)

// The plain-file peers keep a message as one JSON object, the body with its id in front: whoever decodes it parses
// it once, where an envelope around it would be parsed twice.
//
//	{"_id":"0197…",…}
const (
	lineStart = `{"_id":"`
	lineHead  = len(lineStart) + 36 + len(`"`) // up to the comma
)

var errNotFound = errors.New("not found")

func appendLine(b []byte, m Message) []byte {
	b = append(b, lineStart...)
	b = append(b, m.ID.String()...)
	b = append(b, '"')
	if len(m.Body) > 2 {
		b = append(b, ',')
	}
	return append(b, m.Body[1:]...)
}

// parseLine gives id and body of a line, in place: the byte before the body's first member becomes its brace.
func parseLine(line []byte, at int64) (Stored, error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) <= lineHead || string(line[:len(lineStart)]) != lineStart {
		return Stored{}, errors.New("not a message")
	}
	id, err := uuid.ParseBytes(line[len(lineStart) : lineHead-1])
	body := line[lineHead:]
	if body[0] == ',' {
		body[0] = '{'
	} else {
		body = line[lineHead-1:]
		body[0] = '{'
	}
	return Stored{id, at, body}, err
}

// replaceFile writes a file whole: temporary file, fsync, rename, fsync of the folder; without syncs when it is
// relaxed.
func replaceFile(dir, name string, d Durability, write func(io.Writer) error) error {
	tmp := dir + "/." + name + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil && d == Full {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, dir+"/"+name)
	}
	if err == nil && d == Full {
		err = syncDir(dir)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
