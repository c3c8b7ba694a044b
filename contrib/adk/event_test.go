package adk

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"google.golang.org/adk/model"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool/toolconfirmation"
	"google.golang.org/genai"
)

// full is an event with every kind of content.
func full() *session.Event {
	return &session.Event{
		LLMResponse: model.LLMResponse{
			Content: &genai.Content{Role: "model", Parts: []*genai.Part{
				{Text: "a < b & c"}, {InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{0, 255}}},
				{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "weather", Args: map[string]any{"city": "Oslo"}}},
			}},
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{TotalTokenCount: 7}, ModelVersion: "m1",
			CustomMetadata: map[string]any{"k": "v"}, TurnComplete: true, FinishReason: genai.FinishReasonStop, AvgLogprobs: -0.5,
		},
		ID: "e1", Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), InvocationID: "i1", Branch: "a.b", Author: "agent",
		Actions: session.EventActions{
			StateDelta: map[string]any{"user:k": 1.5}, ArtifactDelta: map[string]int64{},
			RequestedToolConfirmations: map[string]toolconfirmation.ToolConfirmation{"c1": {Hint: "really?"}}, TransferToAgent: "b",
		},
		LongRunningToolIDs: []string{"c1"},
	}
}

// TestEventForm: an event is stored in the form of testdata/event.json, which the test of package adkv2 reads too. It
// comes back unchanged; an empty map stays apart from none.
func TestEventForm(t *testing.T) {
	raw, err := os.ReadFile("testdata/event.json")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, raw); err != nil {
		t.Fatal(err)
	}
	got, err := marshalEvent(full())
	if err != nil || string(got) != want.String() {
		t.Errorf("stored as %s, %v", got, err)
	}
	if back, err := unmarshalEvent(got); err != nil || !reflect.DeepEqual(back, full()) {
		t.Errorf("came back as %+v, %v", back, err)
	}
}

// TestEventFields: the stored event has every field of ADK's. The compiler compares those of its parts.
func TestEventFields(t *testing.T) {
	if ours, theirs := reflect.TypeFor[storedEvent]().NumField(), reflect.TypeFor[session.Event]().NumField(); ours != theirs {
		t.Errorf("%d fields of %d", ours, theirs)
	}
}
