package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// defaultThreshold is the library's threshold for the texts of a new store, in bytes.
const defaultThreshold = 16 << 10

// formatOf is the format version in a store's ctxdir.json.
func formatOf(dir string) (string, error) {
	var info struct {
		Format string `json:"ctxdir"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "ctxdir.json"))
	if err == nil {
		err = json.Unmarshal(bytes.TrimPrefix(b, []byte("\ufeff")), &info)
	}
	return info.Format, err
}
