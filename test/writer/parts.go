package writer

// Parts returns the errors that an operation on several contexts joined, so that an error that is allowed hides no
// other. It returns none for nil.
func Parts(err error) (parts []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, part := range joined.Unwrap() {
		parts = append(parts, Parts(part)...)
	}
	return parts
}
