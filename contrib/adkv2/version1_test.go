package adkv2_test

import (
	"os"
	"testing"
	"time"

	"github.com/ctxdir/ctxdir/contrib/adkv2"
	"github.com/ctxdir/ctxdir/contrib/sessions"
	"google.golang.org/adk/v2/session"
)

// TestVersion1: an event that package adk stored, in the form that its test compares, is read with all its content.
func TestVersion1(t *testing.T) {
	body, err := os.ReadFile("../adk/testdata/event.json")
	if err != nil {
		t.Fatal(err)
	}
	store := newStore(t, t.TempDir())
	first, err := sessions.New(store, "adk").Create(t.Context(), sessions.Key{App: "app", User: "ada", ID: "s1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Append(t.Context(), sessions.Event{ID: "e1", Body: body}, nil); err != nil {
		t.Fatal(err)
	}
	s := adkv2.NewSessionService(store)
	sess := get(t, s)
	e := sess.Events().At(0)
	parts := e.Content.Parts
	if parts[0].Text != "a < b & c" || string(parts[1].InlineData.Data) != "\x00\xff" || parts[2].FunctionCall.Args["city"] != "Oslo" {
		t.Errorf("content: %+v", e.Content)
	}
	if e.ID != "e1" || e.InvocationID != "i1" || e.Author != "agent" || e.Branch != "a.b" || len(e.LongRunningToolIDs) != 1 ||
		!e.Timestamp.Equal(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)) {
		t.Errorf("event: %+v", e)
	}
	if e.UsageMetadata.TotalTokenCount != 7 || e.ModelVersion != "m1" || !e.TurnComplete || e.AvgLogprobs != -0.5 {
		t.Errorf("response: %+v", e.LLMResponse)
	}
	a := e.Actions
	if a.StateDelta["user:k"] != 1.5 || a.ArtifactDelta == nil || a.RequestedToolConfirmations["c1"].Hint != "really?" ||
		a.TransferToAgent != "b" {
		t.Errorf("actions: %+v", a)
	}
	if err := s.AppendEvent(t.Context(), sess, event("e2")); err != nil {
		t.Errorf("continue a session of version 1: %v", err)
	}
}

// TestWorkflowFields: the fields that version 2 added are stored.
func TestWorkflowFields(t *testing.T) {
	s := adkv2.NewSessionService(newStore(t, t.TempDir()))
	e := &session.Event{
		ID: "e1", Author: "agent", NodeInfo: &session.NodeInfo{Path: "ask"}, Routes: []string{"a"}, IsolationScope: "task",
		RequestedInput: &session.RequestInput{InterruptID: "ask", Message: "Name?"}, Output: "out",
	}
	if err := s.AppendEvent(t.Context(), create(t, s, nil), e); err != nil {
		t.Fatal(err)
	}
	got := get(t, s).Events().At(0)
	if got.NodeInfo.Path != "ask" || got.Routes[0] != "a" || got.IsolationScope != "task" || got.Output != "out" ||
		got.RequestedInput.Message != "Name?" {
		t.Errorf("came back as %+v", got)
	}
}
