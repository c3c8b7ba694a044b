package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/internal/engine"
)

func Fill(t *testing.T, b *engine.Branch, n int) {
	t.Helper()
	drafts := make([]engine.Draft, n)
	for i := range drafts {
		drafts[i].Body = fmt.Appendf(nil, `{"role":"user","n":%d,"text":%q}`, i, strings.Repeat("z", 200))
	}
	if _, err := b.AppendBatch(context.Background(), drafts); err != nil {
		t.Fatal(err)
	}
}

func Must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
