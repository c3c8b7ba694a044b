package main

import "github.com/ctxdir/ctxdir/server/chat"

// model returns the model that agents ask; nil if there is none.
func (c *config) model() (*chat.Model, error) {
	if c.ModelURL == "" {
		if c.ModelName != "" || c.ModelKey != "" {
			return nil, wrong("--model-name and --model-key need --model-url")
		}
		return nil, nil
	}
	m := &chat.Model{URL: c.ModelURL, Name: c.ModelName, Key: c.ModelKey}
	if err := m.Check(); err != nil {
		return nil, wrong("--model-url: %v", err)
	}
	return m, nil
}
