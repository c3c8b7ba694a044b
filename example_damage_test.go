package ctxdir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// mend repairs a context, and returns how many findings it could not mend.
func mend(ctx context.Context, s *ctxdir.Store, id uuid.UUID) (left int, err error) {
	mended, err := s.Repair(ctx, ctxdir.RepairOptions{
		Contexts: []uuid.UUID{id},
		Progress: func(p ctxdir.CheckProgress) { left = p.Left },
	})
	for _, f := range mended {
		log.Printf("%s: %s", f.Kind, f.Detail)
	}
	return left, err
}

func ExampleStore_Repair() {
	log.SetOutput(os.Stdout)
	log.SetFlags(0)
	defer log.SetOutput(os.Stderr)
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	at := must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	file := filepath.Join(s.Info().Path, c.ID().String(), "messages", "branch-main", at.ID.String()+".json")
	check(c.Flush(ctx)) // makes the file
	check(os.WriteFile(file, []byte("oops"), 0o600))

	fmt.Println(mend(ctx, s, c.ID()))
	// Output:
	// message-damaged: recreated from the committed message
	// 0 <nil>
}

func ExampleStore_Check() {
	ctx := context.Background()
	s, c, done := temporary("A walk")
	defer done()
	at := must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way?")}))
	file := filepath.Join(s.Info().Path, c.ID().String(), "messages", "branch-main", at.ID.String()+".json")
	check(c.Admin().Seal(ctx)) // until then, a message may be without a file
	check(os.Remove(file))

	for f, err := range s.Check(ctx, ctxdir.CheckOptions{All: true}) {
		check(err)
		fmt.Println(f.Severity, f.Kind, f.ID == at.ID, f.Repairable)
	}
	// Output: warning message-missing true true
}

func ExampleMessage() {
	ctx := context.Background()
	s, c, done := temporary("A walk", ctxdir.Options{TextThreshold: 10})
	defer done()
	at := must(c.Active().Append(ctx, ctxdir.Draft{Body: said("user", "Which way to the lighthouse?")}))
	m := must(c.Active().Message(ctx, at.ID))
	body, err := m.Body(ctx)
	fmt.Println(len(must(m.Payloads())), string(body), err)

	check(c.Admin().Seal(ctx)) // until then, the log has the payload
	check(c.Close())
	check(os.RemoveAll(filepath.Join(s.Info().Path, "blobs")))
	again := must(s.Open(ctx, c.ID()))
	defer again.Close()
	body, err = must(again.Active().Message(ctx, at.ID)).Body(ctx)
	var payload *ctxdir.Error
	fmt.Println(len(body) > 0, errors.As(err, &payload) && payload.Path == "/content")
	// Output:
	// 1 {"role":"user","content":"Which way to the lighthouse?"} <nil>
	// true true
}
