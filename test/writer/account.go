package writer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Op is something a writer does.
type Op string

// The operations. Those behind Tidy change nothing that a reader can see.
const (
	Append    Op = "append"    // Messages to Branch; done, they have Positions
	Burst     Op = "burst"     // the same by several goroutines at once: each message is placed by itself
	Replace   Op = "replace"   // the message of an id
	Erase     Op = "erase"     // the message of an id
	New       Op = "new"       // Branch
	Fork      Op = "fork"      // To begins with the first At messages of Branch
	Rename    Op = "rename"    // Branch to To
	Rewind    Op = "rewind"    // Branch to its first At messages
	Remove    Op = "remove"    // Branch
	Configure Op = "configure" // the configuration has Value under the writer's name
	Create    Op = "create"    // Context
	Delete    Op = "delete"    // Context
	Import    Op = "import"    // Messages in Path to a context that is known when it is done
	Migrate   Op = "migrate"   // Messages in Path to Context
	Tidy      Op = "tidy"      // Value: seal, archive, unarchive, externalise, collect or reopen
)

// State says how far a step has come.
type State string

// The states. What is begun and in no other state was cut off: it may have happened or not.
const (
	Begun  State = "begun"
	Placed State = "placed" // one message of a burst was acknowledged
	Done   State = "done"   // acknowledged
	Busy   State = "busy"   // refused, since somebody else was at it: it did not happen
	Failed State = "failed" // the writer ends with it: it may have happened or not
)

// Step is a line of an account.
type Step struct {
	State    State     `json:"state"`
	Time     time.Time `json:"time"`
	Op       Op        `json:"op"`
	Context  uuid.UUID `json:"context,omitzero"`
	Branch   string    `json:"branch,omitempty"`
	To       string    `json:"to,omitempty"`
	At       int64     `json:"at,omitempty"`
	Messages []Message `json:"messages,omitempty"`
	Value    string    `json:"value,omitempty"`
	Path     string    `json:"path,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// Message is one that a writer offered. It has a position once it was acknowledged.
type Message struct {
	ID       uuid.UUID `json:"id,omitzero"` // the importer gives its own
	Sum      Sum       `json:"sum"`
	Position int64     `json:"position"`
}

// account is where a writer puts down what it is about to do and what it was told. It lies outside of the file system
// whose power is cut, and is written before the writer goes on: who dies now has said everything.
type account struct {
	mu   sync.Mutex
	file *os.File
}

func openAccount(path string) (*account, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &account{file: f}, nil
}

func (a *account) write(s Step) error {
	s.Time = time.Now()
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err = a.file.Write(append(line, '\n'))
	return err
}

// ReadAccount reads what a writer has put down. The writer may have been killed in the middle of the last line, or
// before the first.
func ReadAccount(path string) ([]Step, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []Step
	for line := range bytes.Lines(b) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var s Step
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(steps)+1, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}
