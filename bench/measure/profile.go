package measure

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Cost is the share of the processor time that a function took.
type Cost struct {
	Function string  `json:"function"`
	Share    float64 `json:"share"`
}

// Profile is where a lane's time goes.
type Profile struct {
	Wall  time.Duration `json:"wall"`
	CPU   time.Duration `json:"cpu"`   // of all threads; the rest of Wall is waiting, for the disk as a rule
	Flat  []Cost        `json:"flat"`  // in the function itself
	Under []Cost        `json:"under"` // in it and what it calls
}

// Profiled repeats a lane's turn for a time and says where the processor was. A copy of the raw profile goes to
// path, unless that is empty.
func Profiled(l Lane, p Plan, length time.Duration, path string) (*Profile, error) {
	var buf bytes.Buffer
	if err := pprof.StartCPUProfile(&buf); err != nil {
		return nil, err
	}
	s := &Samples{}
	for start := time.Now(); s.Wall < length && time.Since(start) < 10*length; {
		if err := p.turn(l, s); err != nil {
			pprof.StopCPUProfile()
			return nil, err
		}
	}
	pprof.StopCPUProfile()
	if path != "" {
		if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	prof, err := profile.Parse(&buf)
	if err != nil {
		return nil, err
	}
	out := &Profile{Wall: s.Wall, CPU: s.CPU}
	out.Flat, out.Under = costs(prof)
	return out, nil
}

// costs sums samples by function. Only what a turn does or starts counts: preparing and collecting garbage between
// turns is no part of it.
func costs(p *profile.Profile) (flat, under []Cost) {
	own, all := map[string]int64{}, map[string]int64{}
	var total int64
	for _, s := range p.Sample {
		if s.Label[turnLabel] == nil {
			continue
		}
		v := s.Value[len(s.Value)-1]
		total += v
		seen := map[string]bool{}
		for i, loc := range s.Location {
			for j, line := range loc.Line {
				name := line.Function.Name
				if i == 0 && j == 0 {
					own[name] += v
				}
				if !seen[name] {
					seen[name] = true
					all[name] += v
				}
			}
		}
	}
	return top(own, total, func(string) bool { return true }), top(all, total, func(name string) bool {
		return strings.Contains(name, "/ctxdir.") || strings.Contains(name, "ctxdir/ctxdir/") && !strings.Contains(name, "/bench/") ||
			strings.HasPrefix(name, "syscall.") || strings.HasPrefix(name, "golang.org/x/sys") || strings.HasPrefix(name, "os.") ||
			strings.Contains(name, "go-json-experiment/json.Unmarshal") || strings.HasSuffix(name, "corpus.Decode") ||
			name == "runtime.gcBgMarkWorker" || name == "runtime.mallocgc"
	})
}

func top(by map[string]int64, total int64, keep func(string) bool) []Cost {
	const most = 14
	var out []Cost
	for name, v := range by {
		if total > 0 && keep(name) {
			out = append(out, Cost{short(name), float64(v) / float64(total)})
		}
	}
	slices.SortFunc(out, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Function, b.Function))
	})
	return out[:min(len(out), most)]
}

func short(name string) string {
	return name[strings.LastIndexByte(name, '/')+1:]
}

func (c Cost) String() string { return fmt.Sprintf("%s %.0f %%", c.Function, 100*c.Share) }
