package place

// Holder is the holder of a lock.
type Holder struct {
	Name    string // of the lock's file
	Process int    // 0 if the process ended or is not visible from here
}
