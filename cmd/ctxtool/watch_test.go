package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// watched is a process that follows a context.
type watched struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

type watchedRecord struct {
	Record, Event string
	Position      int64
	Seq           uint64
}

func startWatch(t *testing.T, store string, args ...string) *watched {
	t.Helper()
	w := &watched{cmd: exec.Command("ctxtool", append([]string{"--json", "watch"}, args...)...)}
	w.cmd.Env, w.cmd.Stderr = append(os.Environ(), "CTXDIR_STORE="+store), os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
	w.lines = bufio.NewScanner(out)
	if r := w.next(t); r.Record != "ready" {
		t.Fatalf("first came %+v", r)
	}
	return w
}

func (w *watched) next(t *testing.T) (r watchedRecord) {
	t.Helper()
	if !w.lines.Scan() {
		t.Fatalf("the output ended: %v", w.lines.Err())
	}
	if err := json.Unmarshal(w.lines.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, w.lines.Text())
	}
	return r
}

// TestWatchKilled: a watcher is killed while others write, and restarted after the last number it printed. It misses
// nothing and repeats nothing.
func TestWatchKilled(t *testing.T) {
	const rounds, each = 8, 200
	p := newInProcess(t)
	id := p.new(t)
	told, seq := int64(0), uint64(0)
	for round := range rounds {
		w := startWatch(t, p.store, id, "--from", fmt.Sprint(seq))
		writer := exec.Command("ctxtool", "append", id, "--jsonl")
		writer.Env = append(os.Environ(), "CTXDIR_STORE="+p.store)
		writer.Stdin = strings.NewReader(strings.Repeat("{\"a\":1}\n", each))
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		until := told + each/2 // while the writer may be at it
		if round == rounds-1 {
			until = rounds * each
		}
		for told < until {
			r := w.next(t)
			if r.Record != "message" || r.Event != "appended" || r.Position != told || r.Seq <= seq {
				t.Fatalf("%+v behind position %d, number %d", r, told-1, seq)
			}
			told, seq = told+1, r.Seq
		}
		if err := w.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := writer.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatchInterrupted: Ctrl-C ends a watch with the exit status of an interrupt.
func TestWatchInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted there")
	}
	p := newInProcess(t)
	w := startWatch(t, p.store, p.new(t))
	w.cmd.Stderr = nil
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for w.lines.Scan() {
		t.Errorf("behind the end: %s", w.lines.Text())
	}
	_ = w.cmd.Wait()
	if code := w.cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit status %d", code)
	}
}
