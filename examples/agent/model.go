package main

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

// script is a model that needs no network: it answers each question with a call of the tool "distance", and the result
// of the tool with a sentence. What it says depends on the history only.
type script struct{}

func (script) Name() string { return "script" }

func (script) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		last := req.Contents[len(req.Contents)-1]
		part := last.Parts[len(last.Parts)-1]
		var content *genai.Content
		if result := part.FunctionResponse; result != nil {
			content = genai.NewContentFromText(fmt.Sprintf("It is %v km.", result.Response["km"]), genai.RoleModel)
		} else {
			content = genai.NewContentFromFunctionCall("distance", map[string]any{"question": part.Text}, genai.RoleModel)
		}
		yield(&model.LLMResponse{Content: content}, nil)
	}
}

type question struct {
	Question string `json:"question"`
}

type answer struct {
	Km int `json:"km"`
}

// newAgent returns an agent with the model and its tool. It keeps its newest answer in the state of the session.
func newAgent() (agent.Agent, error) {
	distance, err := functiontool.New(functiontool.Config{Name: "distance", Description: "Measure a distance."},
		func(_ agent.ToolContext, q question) (answer, error) { return answer{Km: 100 * len(q.Question)}, nil })
	if err != nil {
		return nil, err
	}
	return llmagent.New(llmagent.Config{
		Name: "guide", Model: script{}, Instruction: "Answer questions about distances.", Tools: []tool.Tool{distance}, OutputKey: "answer",
	})
}
