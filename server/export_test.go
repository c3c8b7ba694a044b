package server

import "time"

// RecheckEvery sets how often a request that lasts is looked at again.
func (x *Server) RecheckEvery(d time.Duration) { x.recheck = d }
