package journal

import "github.com/ctxdir/ctxdir/internal/message"

// IsRecord reports whether a line of a log, with its newline, is a whole record.
func IsRecord(line []byte) bool {
	h, ok := parseHead(line)
	if !ok || h.Len > maxLen || h.Size() != int64(len(line)) {
		return false
	}
	body := line[headSize:]
	return ended(body[h.Len:]) && message.Sum(body[:h.Len]) == h.Sum
}
