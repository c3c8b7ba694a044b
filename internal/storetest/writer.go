package storetest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/google/uuid"
)

// Main runs the tests, or in a process that a test began with CTXDIR_WRITER a writer: its arguments are a context, a
// name and the number of messages. A package whose tests begin such processes calls it in TestMain.
func Main(m *testing.M) {
	if dir := os.Getenv("CTXDIR_WRITER"); dir != "" {
		if err := writer(dir, os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writer appends n messages one by one and prints where each one is.
func writer(dir, id, name, n string) error {
	ctx := context.Background()
	count, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	seals, err := strconv.ParseInt(cmp.Or(os.Getenv("CTXDIR_WRITER_SEALS"), "100000"), 10, 64)
	if err != nil {
		return err
	}
	s, err := Open(dir, engine.WithSealBytes(seals), engine.WithFiles(engine.FilesBehind))
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(ctx, uuid.MustParse(id))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for i := range count {
		at, err := c.Active().Append(ctx, engine.Draft{Body: fmt.Appendf(nil, `{"writer":%q,"n":%d}`, name, i)})
		if err != nil {
			return err
		}
		fmt.Fprintln(out, at.Position, at.ID)
	}
	if err := c.Close(); err != nil {
		return err
	}
	return out.Flush()
}
