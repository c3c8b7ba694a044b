package taskstore

import (
	"context"
	"time"
)

// Authenticator names the user of a call.
type Authenticator func(context.Context) (string, error)

// InMemoryStoreConfig is what the framework's store can be given.
type InMemoryStoreConfig struct {
	Authenticator Authenticator
	TimeProvider  func() time.Time
}

// New is set by the test: the adapter imports this package.
var New func(Authenticator) Store

// InMemory is the adapter.
type InMemory struct{ Store }

// NewInMemory returns a store in a new folder.
func NewInMemory(config *InMemoryStoreConfig) *InMemory {
	if config == nil {
		config = &InMemoryStoreConfig{}
	}
	return &InMemory{New(config.Authenticator)}
}
