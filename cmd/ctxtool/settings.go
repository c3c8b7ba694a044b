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
)

// setting is a K=V of the command line. V is a JSON value, or else a text.
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
		return setting{}, usage(cmd, "%s: expected K=V, got %q", flag, text)
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
	var o folder.Object
	if *object != nil {
		if err := o.UnmarshalJSON(*object); err != nil {
			return err
		}
	}
	err := s.set(&o, path)
	if err == nil {
		*object, err = o.MarshalJSON()
	}
	return err
}

func (s *setting) set(o *folder.Object, path []string) error {
	if len(path) == 1 {
		o.Set(path[0], s.value)
		return nil
	}
	var inner folder.Object
	if have := o.Get(path[0]); have != nil {
		if err := inner.UnmarshalJSON(have); err != nil {
			return fmt.Errorf("%q exists and is not an object", path[0])
		}
	}
	if err := s.set(&inner, path[1:]); err != nil {
		return err
	}
	b, err := inner.MarshalJSON()
	if err == nil {
		o.Set(path[0], b)
	}
	return err
}

// textOf is a text as JSON.
func textOf(s string) json.RawMessage { return encode(s) }
