package place

// Holder is who holds a lock.
type Holder struct {
	Name    string // of the lock's file
	Process int    // 0 when it ended, or cannot be seen from here
}
