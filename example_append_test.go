package ctxdir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// say appends a message under an id that the program chose before the first attempt. A retry makes no second message, even after a restart,
// if the program kept the id.
func say(ctx context.Context, b *ctxdir.Branch, id uuid.UUID, body json.RawMessage) (ctxdir.AppendResult, error) {
	var at ctxdir.AppendResult
	var err error
	for range 3 {
		at, err = b.Append(ctx, ctxdir.Draft{ID: id, Body: body})
		if !errors.Is(err, ctxdir.ErrDurability) && !errors.Is(err, ctxdir.ErrLocked) {
			break
		}
	}
	return at, err
}

func ExampleBranch_Append() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	id := uuid.MustParse("0197f3c2-0000-7000-8000-000000000001")
	for range 2 {
		at, err := say(ctx, c.Active(), id, said("user", "Which way?"))
		fmt.Println(at.Position, at.Existed, err)
	}
	_, err := say(ctx, c.Active(), id, said("user", "Something else."))
	fmt.Println(errors.Is(err, ctxdir.ErrConflict))
	// Output:
	// 0 false <nil>
	// 0 true <nil>
	// true
}

// called stores a tool call, its result, and the state that follows from it. After a crash, either all of it is there or none of it.
func called(ctx context.Context, c *ctxdir.Context, branch string, call, result, state json.RawMessage) error {
	_, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
		_ = tx.Append(branch, ctxdir.Draft{Body: call}, ctxdir.Draft{Body: result}) // if it fails, the commit fails
		return tx.Update(func(m *ctxdir.Metadata) error {
			m.State = state
			return nil
		})
	})
	return err
}

func ExampleContext_Commit_state() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	check(called(ctx, c, "main",
		json.RawMessage(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"weather"}}]}`),
		json.RawMessage(`{"role":"tool","tool_call_id":"1","content":"rain"}`),
		json.RawMessage(`{"tools":1}`),
	))
	list(c.Active())
	// Output:
	// 0 {"role":"assistant","tool_calls":[{"id":"1","function":{"name":"weather"}}]}
	// 1 {"role":"tool","tool_call_id":"1","content":"rain"}
}

// answer appends only at the position that the caller expects: it fails when another writer was faster.
func answer(ctx context.Context, b *ctxdir.Branch, seen int64, body json.RawMessage) error {
	_, err := b.Append(ctx, ctxdir.Draft{Body: body}, ctxdir.WriteOptions{Position: &seen})
	return err
}

func ExampleWriteOptions() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	b := c.Active()
	must(b.Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	seen := must(b.Len(ctx))
	must(b.Append(ctx, ctxdir.Draft{Body: said("user", "No, wait.")})) // another writer

	err := answer(ctx, b, seen, said("assistant", "Left."))
	fmt.Println(errors.Is(err, ctxdir.ErrPosition))
	// Output: true
}

// stream stores an answer while it arrives, and replaces it with each page. After a crash the newest version is there,
// under the same id and position.
func stream(ctx context.Context, b *ctxdir.Branch, parts iter.Seq[string]) error {
	const page = 4 << 10
	at, err := b.Append(ctx, ctxdir.Draft{Body: said("assistant", "")})
	if err != nil {
		return err
	}
	text, kept := "", 0
	for part := range parts {
		text += part
		if len(text)-kept < page {
			continue
		}
		if err := b.Replace(ctx, at.ID, ctxdir.Draft{Body: said("assistant", text)}); err != nil {
			return err
		}
		kept = len(text)
	}
	return b.Replace(ctx, at.ID, ctxdir.Draft{Body: said("assistant", text)})
}

func ExampleBranch_Replace() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	check(stream(ctx, c.Active(), slices.Values([]string{"Left, ", "along ", "the quay."})))
	list(c.Active())
	// Output:
	// 0 {"role":"user","content":"Which way?"}
	// 1 {"role":"assistant","content":"Left, along the quay."}
}

// attach appends a message with a file. The file does not pass through memory as a whole.
func attach(ctx context.Context, b *ctxdir.Branch, path string) (ctxdir.AppendResult, error) {
	return b.Append(ctx, ctxdir.Draft{
		Body: []byte(`{"role":"user","content":[{"type":"image_url","image_url":{"url":""}}]}`),
		Attachments: []ctxdir.Attachment{{
			At:        "/content/0/image_url/url",
			MediaType: "image/png",
			Prefix:    "data:image/png;base64,",
			Open:      func() (io.ReadCloser, error) { return os.Open(path) },
		}},
	})
}

func ExampleAttachment() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	file := must(os.CreateTemp("", "*.png"))
	defer os.Remove(file.Name())
	must(file.WriteString("\x89PNG, or so"))
	file.Close()

	at := must(attach(ctx, c.Active(), file.Name()))
	m := must(c.Active().Message(ctx, at.ID))
	fmt.Println(string(must(m.Body(ctx))))
	for _, p := range must(m.Payloads()) {
		fmt.Println(p.MediaType, p.Size)
	}
	// Output:
	// {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORywgb3Igc28="}}]}
	// image/png 11
}

func ExampleContext_Commit() {
	ctx := context.Background()
	_, c, done := temporary("A walk")
	defer done()
	append4 := func(tx *ctxdir.Tx) error {
		for _, text := range []string{"Which way?", "Left.", "And then?", "Right."} {
			_ = tx.Append("main", ctxdir.Draft{Body: said("user", text)})
		}
		return nil
	}
	first, err := c.Commit(ctx, append4)
	fmt.Println(len(first.Appended), err)

	// Another answer to the second question, and the state that belongs to it.
	second, err := c.Commit(ctx, func(tx *ctxdir.Tx) error {
		_ = tx.Rewind("main", 3)
		_ = tx.Append("main", ctxdir.Draft{Body: said("assistant", "Straight on.")})
		return tx.Update(func(m *ctxdir.Metadata) error {
			m.State = json.RawMessage(`{"lost":false}`)
			return nil
		})
	}, ctxdir.WriteOptions{Sequence: &first.Sequence})
	fmt.Println(second.Appended[0].Position, string(c.Metadata().State), err)

	// The context changed since the first commit.
	_, err = c.Commit(ctx, append4, ctxdir.WriteOptions{Sequence: &first.Sequence})
	fmt.Println(errors.Is(err, ctxdir.ErrPosition))
	// Output:
	// 4 <nil>
	// 3 {"lost":false} <nil>
	// true
}
