package adk

import (
	"encoding/json"
	"time"

	"github.com/ctxdir/ctxdir/contrib/sessions"
	"google.golang.org/adk/model"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool/toolconfirmation"
	"google.golang.org/genai"
)

// An event is stored in the JSON form of ADK 2, which other tools know too. ADK 1 has none, so the types here repeat its
// structs with names for JSON. The conversions between them compile only while all fields are the same.

type llmResponse struct {
	Content                 *genai.Content                              `json:"content,omitempty"`
	CitationMetadata        *genai.CitationMetadata                     `json:"citationMetadata,omitempty"`
	GroundingMetadata       *genai.GroundingMetadata                    `json:"groundingMetadata,omitempty"`
	UsageMetadata           *genai.GenerateContentResponseUsageMetadata `json:"usageMetadata,omitempty"`
	CustomMetadata          map[string]any                              `json:"customMetadata,omitempty"`
	LogprobsResult          *genai.LogprobsResult                       `json:"logprobsResult,omitempty"`
	InputTranscription      *genai.Transcription                        `json:"inputTranscription,omitempty"`
	OutputTranscription     *genai.Transcription                        `json:"outputTranscription,omitempty"`
	ModelVersion            string                                      `json:"modelVersion,omitempty"`
	Partial                 bool                                        `json:"partial,omitempty"`
	TurnComplete            bool                                        `json:"turnComplete,omitempty"`
	Interrupted             bool                                        `json:"interrupted,omitempty"`
	SessionResumptionHandle string                                      `json:"sessionResumptionHandle,omitempty"`
	ErrorCode               string                                      `json:"errorCode,omitempty"`
	ErrorMessage            string                                      `json:"errorMessage,omitempty"`
	FinishReason            genai.FinishReason                          `json:"finishReason,omitempty"`
	AvgLogprobs             float64                                     `json:"avgLogprobs,omitempty"`
}

type eventActions struct {
	StateDelta                 map[string]any                               `json:"stateDelta,omitzero"` // keeps an empty map apart from nil
	ArtifactDelta              map[string]int64                             `json:"artifactDelta,omitzero"`
	RequestedToolConfirmations map[string]toolconfirmation.ToolConfirmation `json:"requestedToolConfirmations,omitempty"`
	SkipSummarization          bool                                         `json:"skipSummarization,omitempty"`
	TransferToAgent            string                                       `json:"transferToAgent,omitempty"`
	Escalate                   bool                                         `json:"escalate,omitempty"`
}

// storedEvent is [session.Event] with names for JSON.
type storedEvent struct {
	llmResponse
	ID                 string       `json:"id"`
	Timestamp          time.Time    `json:"timestamp"`
	InvocationID       string       `json:"invocationId"`
	Branch             string       `json:"branch,omitempty"`
	Author             string       `json:"author"`
	Actions            eventActions `json:"actions"`
	LongRunningToolIDs []string     `json:"longRunningToolIds,omitempty"`
}

func marshalEvent(e *session.Event) (json.RawMessage, error) {
	return sessions.Marshal(storedEvent{
		llmResponse(e.LLMResponse), e.ID, e.Timestamp, e.InvocationID, e.Branch, e.Author, eventActions(e.Actions), e.LongRunningToolIDs,
	})
}

func unmarshalEvent(b json.RawMessage) (*session.Event, error) {
	var s storedEvent
	err := json.Unmarshal(b, &s)
	return &session.Event{
		LLMResponse: model.LLMResponse(s.llmResponse), ID: s.ID, Timestamp: s.Timestamp, InvocationID: s.InvocationID,
		Branch: s.Branch, Author: s.Author, Actions: session.EventActions(s.Actions), LongRunningToolIDs: s.LongRunningToolIDs,
	}, err
}

// createTime returns a time as [artifact.ArtifactVersion] has it: in seconds.
func createTime(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
