// Package compress shortens texts of a conversation to a number of tokens.
package compress

import "context"

// Compressor makes a summary of texts.
type Compressor interface {
	// Summary returns a summary of texts, in order, of at most maxTokens tokens; it is empty if nothing fits.
	Summary(ctx context.Context, texts []string, maxTokens int) (string, error)
}
