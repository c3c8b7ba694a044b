package session

// Kept returns the store of a session.
func Kept[S any](s *Session[S]) *Store[S] { return &s.store }
