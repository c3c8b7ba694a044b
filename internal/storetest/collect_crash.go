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
	for _, err := range trash.Collect(context.Background(), s, trash.CollectOptions{Grace: grace}) {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func FindItem(s *engine.Store, name string) (engine.TrashItem, error) {
	for t, err := range trash.List(context.Background(), s) {
		if err != nil || t.Kind == "line" && t.Name == name {
			return t, err
		}
	}
	return engine.TrashItem{}, fmt.Errorf("nothing of %q is in trash", name)
}
