// Package compress shortens texts of a conversation to a number of tokens.
//
// Its API may change with any minor version; CHANGELOG.md says how.
package compress

import (
	"errors"
	"fmt"
)

// The modes of compression, as a store's setting names them.
const (
	ModeLocal  = "local"  // [Local]
	ModeRemote = "remote" // [Remote]
	ModeHybrid = "hybrid" // [Hybrid]
)

// Modes lists the modes.
var Modes = []string{ModeLocal, ModeRemote, ModeHybrid}

// New returns the compressor of a mode; an empty mode is local. count counts tokens, nil for an estimate. The other modes
// need an endpoint.
func New(mode string, endpoint *Endpoint, count func(text string) int) (Compressor, error) {
	local, remote := Local{Tokens: count}, Remote{Endpoint: endpoint, Tokens: count}
	switch {
	case mode == "" || mode == ModeLocal:
		return local, nil
	case mode != ModeRemote && mode != ModeHybrid:
		return nil, fmt.Errorf("unknown compression %q; use one of %q", mode, Modes)
	case endpoint == nil:
		return nil, errors.New("compression " + mode + " needs the address of a server")
	case mode == ModeRemote:
		return remote, nil
	}
	return Hybrid{Local: local, Remote: remote}, nil
}
