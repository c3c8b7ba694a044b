package storetest

// IterationError returns the error that ends an iteration.
func IterationError[T any](seq func(yield func(T, error) bool)) (err error) {
	seq(func(_ T, e error) bool { err = e; return e == nil })
	return err
}
