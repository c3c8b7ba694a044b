package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
)

// large is from where a conversation has to meet the goals by itself, in bytes.
const large = 256 << 10

// rounds is how often what is timed is repeated; the median counts.
const rounds = 9

// frames prints what frame size and level make of all conversations: no rows, no tables, frames alone.
func frames(out io.Writer, contexts []*conversation) error {
	var raw, ten int64
	messages := 0
	for _, c := range contexts {
		raw += c.raw
		ten += c.zstd10
		messages += len(c.messages)
	}
	fmt.Fprintf(out, "%d contexts, %d messages, %d bytes; `zstd -10` over each context's messages: %d bytes (%.1f %%).\n\n",
		len(contexts), messages, raw, ten, percent(ten, raw))
	fmt.Fprintln(out, "| level | frame | bytes | to `zstd -10` | worst above 256 KiB | compressed | decoded | one frame, median by message |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- |")
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer d.Close()
	for _, level := range []zstd.EncoderLevel{zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
		for _, kib := range []int{64, 128, 256, 512, 1024, 2048, 4096} {
			e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
			if err != nil {
				return err
			}
			var total int64
			worst := 0.0
			var all []packed
			start := time.Now()
			for _, c := range contexts {
				var sum int64
				for _, f := range cut(c, kib<<10) {
					f.content = e.EncodeAll(f.content, nil)
					sum += int64(len(f.content))
					all = append(all, f)
				}
				total += sum
				if c.raw > large {
					worst = max(worst, float64(sum)/float64(c.zstd10))
				}
			}
			encoding := time.Since(start)
			each, decoding, err := decodeAll(d, all)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "| %v | %d KiB | %d | %.3f | %.3f | %.0f MB/s | %.0f MB/s | %d µs |\n",
				level, kib, total, float64(total)/float64(ten), worst,
				float64(raw)/1e6/encoding.Seconds(), float64(raw)/1e6/decoding.Seconds(), each.Microseconds())
		}
	}
	fmt.Fprintln(out)
	return nil
}

// packed is a frame and how many messages it has.
type packed struct {
	content  []byte
	messages int
}

// cut cuts a conversation into frames as package archive does.
func cut(c *conversation, most int) (frames []packed) {
	var f packed
	for _, m := range c.messages {
		if len(f.content) > 0 && len(f.content)+len(m.content) > most {
			frames = append(frames, f)
			f = packed{}
		}
		f.content = append(f.content, m.content...)
		f.messages++
	}
	if f.messages > 0 {
		frames = append(frames, f)
	}
	return frames
}

// decodeAll returns the median time to decode the frame of a message, each message counted, and the median time to
// decode all.
func decodeAll(d *zstd.Decoder, all []packed) (each, whole time.Duration, err error) {
	var wholes []time.Duration
	times := make([][]time.Duration, len(all))
	var buffer []byte
	for range rounds {
		start := time.Now()
		for i, f := range all {
			begin := time.Now()
			if buffer, err = d.DecodeAll(f.content, buffer[:0]); err != nil {
				return 0, 0, err
			}
			times[i] = append(times[i], time.Since(begin))
		}
		wholes = append(wholes, time.Since(start))
	}
	var weighed []time.Duration
	for i, f := range all {
		m := median(times[i])
		for range f.messages {
			weighed = append(weighed, m)
		}
	}
	return median(weighed), median(wholes), nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func percent(a, b int64) float64 { return 100 * float64(a) / float64(b) }
