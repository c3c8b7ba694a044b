package mcp

import (
	"errors"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addTool adds a tool. Models add arguments that no tool has: they are ignored.
func addTool[In any](s *sdk.Server, t *sdk.Tool, h sdk.ToolHandlerFor[In, any]) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // the types are those of this package
	}
	schema.AdditionalProperties = nil
	t.InputSchema = schema
	sdk.AddTool(s, t, h)
}

// closed says that a tool knows the store alone.
var closed = new(bool)

func readOnly(title string) *sdk.ToolAnnotations {
	return &sdk.ToolAnnotations{Title: title, ReadOnlyHint: true, OpenWorldHint: closed}
}

// limit bounds a number of results.
func limit(asked, byDefault int) int {
	if asked <= 0 {
		return byDefault
	}
	return min(asked, pageSize)
}

// day parses a day, or a time.
func day(text string) (t time.Time, err error) {
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.DateOnly, text); err != nil {
		if t, err = time.Parse(time.RFC3339, text); err != nil {
			return t, errors.New("since is not a day such as 2026-05-01")
		}
	}
	return t, nil
}
