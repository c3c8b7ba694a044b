package assemble

// addMoments adds the moments that matter for the query.
func (b *builder) addMoments() error { return nil }
