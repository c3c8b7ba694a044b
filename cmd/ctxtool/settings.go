package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	folder "github.com/ctxdir/ctxdir/context"
	"github.com/spf13/cobra"

	"github.com/ctxdir/ctxdir/internal/record"
)

// setting is a KEY=VALUE of the command line. VALUE is JSON, or plain text if it is not valid JSON.
type setting struct {
	key   string
	path  []string // key, split at its dots
	text  string
	value json.RawMessage
}

func parseSetting(cmd *cobra.Command, flag, text string) (setting, error) {
	key, value, ok := strings.Cut(text, "=")
	switch {
	case !ok || key == "":
		return setting{}, usage(cmd, "%s: expected KEY=VALUE, got %q", flag, text)
	case !utf8.ValidString(text):
		return setting{}, usage(cmd, "%s: %q is not valid UTF-8", flag, text)
	}
	s := setting{key: key, path: strings.Split(key, "."), text: value, value: textOf(value)}
	if slices.Contains(s.path, "") {
		return setting{}, usage(cmd, "%s: %q has an empty part between dots", flag, key)
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(value)) == nil && b.Len() > 0 {
		s.value = b.Bytes()
	}
	return s, nil
}

// into sets the value at a path of an object. A nil object is empty; missing objects on the path are created.
func (s *setting) into(object *json.RawMessage, path []string) error {
	if len(path) == 0 {
		*object = s.value
		return nil
	}
	var o folder.Object
	if *object != nil && o.UnmarshalJSON(*object) != nil {
		return fmt.Errorf("cannot set member %q of a value that is not an object", path[0])
	}
	member := o.Get(path[0])
	err := s.into(&member, path[1:])
	if err == nil {
		o.Set(path[0], member)
		*object, err = o.MarshalJSON()
	}
	return err
}

// textOf is a text as JSON.
func textOf(s string) json.RawMessage { return record.Encode(s) }
