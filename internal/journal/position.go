// Package journal has what the files of a history share: the places in it.
package journal

// Position is a place in the history of a context: the number of a record, and its chain. The record after it has the next
// number and names the chain.
type Position struct{ Seq, Chain uint64 }
