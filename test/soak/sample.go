package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// sampleEnv names the file to which a process writes its samples.
const sampleEnv = "CTXDIR_TEST_SAMPLES"

// Sample is what a process holds at a moment.
type Sample struct {
	At          time.Time `json:"at"`
	Descriptors int       `json:"descriptors"`
	Goroutines  int       `json:"goroutines"`
	Heap        uint64    `json:"heap"`     // bytes in use behind a collection
	Resident    uint64    `json:"resident"` // bytes
	Done        int64     `json:"done"`     // whatever the process counts
}

// sampling writes samples until the process ends. done counts what it does.
func sampling(path string, every time.Duration, done func() int64) {
	f, err := os.Create(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	e := json.NewEncoder(f)
	go func() {
		for {
			if err := e.Encode(sample(done())); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			time.Sleep(every)
		}
	}()
}

func sample(done int64) Sample {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := Sample{At: time.Now(), Goroutines: runtime.NumGoroutine(), Heap: m.HeapInuse, Done: done}
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.Descriptors = len(entries)
	}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		var all, resident uint64
		if _, err := fmt.Sscan(string(b), &all, &resident); err == nil {
			s.Resident = resident * uint64(os.Getpagesize())
		}
	}
	return s
}

// readSamples reads what a process wrote; a line that was being written counts as none.
func readSamples(path string) (all []Sample, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(b)))
	for lines.Scan() {
		var s Sample
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			all = append(all, s)
		}
	}
	return all, lines.Err()
}
