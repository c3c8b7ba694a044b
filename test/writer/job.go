// Package writer is a process that does to a store what programs do, at random, until it is ended, and puts down what
// it was told. Several of them work on one store, and something else ends them.
//
// So that what a store must show afterwards is known without an order between writers, each has branches and contexts
// of its own, which it forks, rewinds, renames, replaces in and removes; and all append to the branch "main" of the
// contexts that they share, where nobody does anything else. Sealing, archiving and collecting concern everybody's.
package writer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/google/uuid"
)

// jobEnv makes a process a writer: see Started.
const jobEnv = "CTXDIR_TEST_WRITER"

// Job is what a writer is to do.
type Job struct {
	Name    string // also of its branches, and the title of its contexts
	Seed    uint64
	Store   string
	Legacy  string      // folder for files to be migrated, beside the store
	Shared  []uuid.UUID // contexts
	Account string      // file
	Scratch string      // folder that no power cut concerns
}

// Started does a writer's job and reports true, if this process is one. A program that starts writers calls it first.
func Started() bool {
	text := os.Getenv(jobEnv)
	if text == "" {
		return false
	}
	// Nobody is to be left when whoever started this is gone.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var j Job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = work(j)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
	return true
}

// Process is a writer at work.
type Process struct {
	Job  Job
	cmd  *exec.Cmd
	lead io.Closer
	done chan struct{} // closed when it has ended
}

// Start starts a writer, which is this program again, and waits until it is at work. What it says when it ends with an
// error is in its account too.
func Start(j Job) (*Process, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{Job: j, cmd: exec.Command(self), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	if p.lead, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	_, ready := bufio.NewReader(out).ReadString('\n')
	go func() {
		_ = p.cmd.Wait() // how it ended stands in its account
		close(p.done)
	}()
	if ready != nil {
		p.Kill()
		return nil, errors.Join(fmt.Errorf("writer %s did not begin", j.Name), p.failure())
	}
	return p, nil
}

func (p *Process) failure() error {
	steps, err := ReadAccount(p.Job.Account)
	if n := len(steps); n > 0 && steps[n-1].State == Failed {
		return errors.New(steps[n-1].Error)
	}
	return err
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Kill kills the process with SIGKILL, unless it has ended, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails when it has ended
	<-p.done
	_ = p.lead.Close()
}
