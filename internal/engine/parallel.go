package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// InParallel calls f for 0 to n-1, on every processor if there are many calls.
func InParallel(n int, f func(i int)) {
	const block = 16 // calls at a time, so that a slow one holds up few others
	if n <= block {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	work := func() {
		for from := int(next.Add(block)) - block; from < n; from = int(next.Add(block)) - block {
			for i := from; i < min(from+block, n); i++ {
				f(i)
			}
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+block-1)/block) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}
