package exp_test

import (
	"github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/ai/exp/localstore"
)

func init() {
	exp.NewSwap = func() exp.SessionStore[exp.TestState] { return localstore.NewInMemorySessionStore[exp.TestState]() }
}
