package moment

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// labelled returns the sentences of the test, those for choosing cues and those for measuring.
func labelled(t *testing.T) (choose, measure [][2]string) {
	t.Helper()
	f, err := os.Open("testdata/sentences.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		kind, text, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			continue
		}
		if n++; n%2 == 1 {
			choose = append(choose, [2]string{kind, text})
		} else {
			measure = append(measure, [2]string{kind, text})
		}
	}
	if len(choose) != 100 || len(measure) != 100 {
		t.Fatalf("%d and %d sentences", len(choose), len(measure))
	}
	return choose, measure
}

// score is how a type was found: right, wrongly found, and missed.
type score struct{ right, wrong, missed int }

func (s score) precision() float64 { return float64(s.right) / float64(max(s.right+s.wrong, 1)) }
func (s score) recall() float64    { return float64(s.right) / float64(max(s.right+s.missed, 1)) }

func scores(t *testing.T, name string, sentences [][2]string) map[Type]score {
	all := map[Type]score{}
	for _, x := range sentences {
		want, text := Type(x[0]), x[1]
		got, strength := classify(text, enough)
		if got == "" {
			got = "none"
		}
		if got == want {
			s := all[got]
			s.right++
			all[got] = s
			continue
		}
		if name == chosen {
			t.Logf("%s, found %s %.2f: %s", want, got, strength, text)
		}
		s := all[got]
		s.wrong++
		all[got] = s
		s = all[want]
		s.missed++
		all[want] = s
	}
	return all
}

const chosen = "chosen on"

// TestCues measures precision and recall on sentences that were not used to choose the cues. The floors are a little
// below what was reached.
func TestCues(t *testing.T) {
	choose, measure := labelled(t)
	floors := map[Type][2]float64{Decision: {0.9, 0.7}, Pattern: {0.9, 0.75}, Solution: {0.9, 0.8}, Context: {0.85, 0.65}}
	for name, half := range map[string][][2]string{chosen: choose, "measured on": measure} {
		all := scores(t, name, half)
		for _, kind := range Types {
			s := all[kind]
			t.Logf("%-11s %-8s precision %.2f recall %.2f", name, kind, s.precision(), s.recall())
			if name == "measured on" && (s.precision() < floors[kind][0] || s.recall() < floors[kind][1]) {
				t.Errorf("%s: precision %.2f, recall %.2f", kind, s.precision(), s.recall())
			}
		}
	}
}
