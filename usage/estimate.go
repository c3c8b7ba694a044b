package usage

import "math"

// bytesPerToken is the average over transcripts of coding agents, with the tokenizers o200k and cl100k.
const bytesPerToken = 3.85

// Estimate is about the number of tokens of a text. Over 7,812 messages of coding agents, one half measured with what was
// fitted to the other, it is off by 7 % in the median from the tokenizers o200k and cl100k, and by 21 % or more for one
// message in ten; a fourth of the bytes is off by 14 % and 30 %.
func Estimate(text string) int64 {
	var letters, digits, blanks, signs, others int
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			letters++
		case r == ' ' || r >= '\t' && r <= '\r':
			blanks++
		case r >= '0' && r <= '9':
			digits++
		case r < 0x80:
			signs++
		default:
			others++
		}
	}
	return int64(math.Ceil(0.16*float64(letters) + 0.65*float64(digits) + 0.38*float64(blanks) + 0.58*float64(signs) + 0.66*float64(others)))
}

// EstimateSize is about the number of tokens of a text of so many bytes, for a text that is not read.
func EstimateSize(bytes int64) int64 { return int64(float64(max(bytes, 0)) / bytesPerToken) }
