// Command agent is an agent of ADK that keeps its session in a ctxdir store. It runs offline.
//
//	agent                 kill the agent at random moments until it has answered all questions, then explore a fork
//	agent answer          answer the questions; continue where an earlier run ended
//
// Follow it from another terminal with "ctxtool --store agent-store watch".
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/adk"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/genai"
)

const app, user, sessionID = "guide", "ada", "walk"

func main() {
	dir := flag.String("store", "agent-store", "the folder of the store")
	n := flag.Int("questions", 30, "how many questions there are")
	flag.Parse()
	ctx := context.Background()
	var err error
	if flag.Arg(0) == "answer" {
		err = withStore(*dir, func(s *ctxdir.Store) error { return answerAll(ctx, s, *n) })
	} else if err = crash(*dir, *n); err == nil {
		err = withStore(*dir, func(s *ctxdir.Store) error { return explore(ctx, s, *n) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func withStore(dir string, f func(s *ctxdir.Store) error) error {
	s, err := ctxdir.Init(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}

// crash starts "agent answer" again and again, and kills it after a random number of events, until it ends by itself.
func crash(dir string, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for killed := 0; ; killed++ {
		c := exec.Command(self, "-store", dir, "-questions", fmt.Sprint(n), "answer")
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			return err
		}
		left := 1 + rand.N(20)
		for events := bufio.NewScanner(out); left > 0 && events.Scan(); left-- {
		}
		if left > 0 { // no more events
			fmt.Printf("killed %d times; all %d questions are answered\n", killed, n)
			return c.Wait()
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// ask runs the agent on a message, or continues without one, and prints a line for each event.
func ask(ctx context.Context, s *adk.SessionService, message *genai.Content) error {
	a, err := newAgent()
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: a, SessionService: s, AutoCreateSession: true})
	if err != nil {
		return err
	}
	for event, err := range r.Run(ctx, user, sessionID, message, agent.RunConfig{}) {
		if err != nil {
			return err
		}
		fmt.Println(event.Author, event.ID)
	}
	return nil
}

func events(ctx context.Context, s *adk.SessionService) (session.Session, error) {
	r, err := s.Get(ctx, &session.GetRequest{AppName: app, UserID: user, SessionID: sessionID})
	if err != nil {
		return nil, err
	}
	return r.Session, nil
}

// answerAll answers the questions that the session does not have yet.
func answerAll(ctx context.Context, store *ctxdir.Store, n int) error {
	s := adk.NewSessionService(store)
	if err := resume(ctx, store, s); err != nil {
		return err
	}
	sess, err := events(ctx, s)
	asked := 0
	if err == nil {
		asked = sess.Events().Len() / len(turn)
	}
	for ; asked < n; asked++ {
		if err := ask(ctx, s, genai.NewContentFromText(questionOf(asked), genai.RoleUser)); err != nil {
			return err
		}
	}
	return nil
}

func questionOf(i int) string { return fmt.Sprintf("How far is it to place %d?", i) }

// resume completes the turn in which an earlier run was killed. A call of a tool without a result is taken back, since
// models refuse that. The agent then continues with what the session has.
func resume(ctx context.Context, store *ctxdir.Store, s *adk.SessionService) error {
	sess, err := events(ctx, s)
	if errors.Is(err, ctxdir.ErrNotExist) {
		return nil // the first run
	}
	if err != nil || sess.Events().Len() == 0 {
		return err
	}
	n := sess.Events().Len()
	last := sess.Events().At(n - 1)
	if last.Author != "user" && last.IsFinalResponse() {
		return nil
	}
	if last.Content.Parts[0].FunctionCall != nil {
		err := store.Use(ctx, adk.ContextID(app, user, sessionID), func(c *ctxdir.Context) error {
			return c.Active().Rewind(ctx, int64(n-1))
		})
		if err != nil {
			return err
		}
	}
	return ask(ctx, s, nil)
}

// turn has the events of a turn, in order.
var turn = []func(p *genai.Part, i int) bool{
	func(p *genai.Part, i int) bool { return p.Text == questionOf(i) },
	func(p *genai.Part, i int) bool {
		return p.FunctionCall != nil && p.FunctionCall.Args["question"] == questionOf(i)
	},
	func(p *genai.Part, _ int) bool { return p.FunctionResponse != nil },
	func(p *genai.Part, _ int) bool { return strings.HasPrefix(p.Text, "It is ") },
}

// verify checks that the session has the events of n turns, each once, and the state of the last one.
func verify(sess session.Session, n int) error {
	if have := sess.Events().Len(); have != n*len(turn) {
		return fmt.Errorf("the session has %d events, not %d", have, n*len(turn))
	}
	var text string
	for i := range n * len(turn) {
		e := sess.Events().At(i)
		if !turn[i%len(turn)](e.Content.Parts[0], i/len(turn)) {
			return fmt.Errorf("event %d is %+v", i, e.Content.Parts[0])
		}
		text = e.Content.Parts[0].Text
	}
	state, err := sess.State().Get("answer")
	if err == nil && state != text {
		err = fmt.Errorf("the state is %v, not %q", state, text)
	}
	return err
}

// explore forks the session, and continues both courses at the same time. Then each has its own end and state.
func explore(ctx context.Context, store *ctxdir.Store, n int) error {
	s := adk.NewSessionService(store)
	sess, err := events(ctx, s)
	if err != nil {
		return err
	}
	if err := verify(sess, n); err != nil {
		return err
	}
	courses := map[string]*adk.SessionService{"main": s}
	for _, name := range []string{"by train", "on foot"} {
		if err := s.Fork(ctx, sess, name); err != nil {
			return err
		}
		courses[name] = s.OnBranch(name)
	}
	var all sync.WaitGroup
	failed := make(chan error, len(courses))
	for name, course := range courses {
		all.Go(func() {
			failed <- ask(ctx, course, genai.NewContentFromText("And "+name+"?", genai.RoleUser))
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	for name, course := range courses {
		sess, err := events(ctx, course)
		if err != nil {
			return err
		}
		state, err := sess.State().Get("answer")
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("It is %d km.", 100*len("And "+name+"?")); state != want || sess.Events().Len() != (n+1)*len(turn) {
			return fmt.Errorf("branch %q: %d events, state %v, not %q", name, sess.Events().Len(), state, want)
		}
		fmt.Printf("branch %q: %d events, the last says: %v\n", name, sess.Events().Len(), state)
	}
	return nil
}
