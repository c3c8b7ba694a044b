package corpus

import (
	"bufio"
	"encoding/json"
	"os"
	"time"
)

// WriteSession writes n messages as a session of Claude Code, one after the other, and returns the size of the file.
func (c *Corpus) WriteSession(path string, n int64) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	s := c.Stream(2)
	w := bufio.NewWriterSize(f, 1<<20)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		record := map[string]json.RawMessage{}
		if err := json.Unmarshal(s.Body(i), &record); err != nil {
			return 0, err
		}
		set := func(name string, v any) { record[name], _ = json.Marshal(v) } // texts, of which none fails
		if role, _ := s.Role(i); role == "assistant" {
			set("type", role)
		} else {
			set("type", "user")
		}
		set("uuid", s.ID(i))
		set("parentUuid", nil)
		if i > 0 {
			set("parentUuid", s.ID(i-1))
		}
		set("sessionId", s.ID(0))
		set("isSidechain", false)
		set("timestamp", begin.Add(time.Duration(i)*time.Second))
		line, err := json.Marshal(record)
		if err != nil {
			return 0, err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
