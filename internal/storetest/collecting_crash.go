package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir/internal/engine"
	"github.com/ctxdir/ctxdir/internal/trash"
)

func CollectAll(s *engine.Store, grace time.Duration) error {
	var failed []error
	for _, err := range trash.Collect(context.Background(), s, trash.Collecting{Grace: grace}) {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func FindTrashed(s *engine.Store, name string) (engine.Trashed, error) {
	for t, err := range trash.Trash(context.Background(), s) {
		if err != nil || t.Kind == "line" && t.Name == name {
			return t, err
		}
	}
	return engine.Trashed{}, fmt.Errorf("nothing of %q is in trash", name)
}
