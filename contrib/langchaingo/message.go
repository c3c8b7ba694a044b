package langchaingo

import (
	"fmt"

	"github.com/tmc/langchaingo/llms"
)

// message is a chat message as it is stored. The framework's own JSON has no form for most types, and loses the function
// of a tool call.
type message struct {
	Type         llms.ChatMessageType `json:"type"`
	Role         string               `json:"role"` // that other programs know; of a generic message its own
	Name         string               `json:"name,omitempty"`
	Content      string               `json:"content"`
	Reasoning    string               `json:"reasoning_content,omitempty"`
	FunctionCall *llms.FunctionCall   `json:"function_call,omitempty"`
	ToolCalls    []toolCall           `json:"tool_calls,omitempty"`
	ToolCallID   string               `json:"tool_call_id,omitempty"`
}

// toolCall is llms.ToolCall without its methods.
type toolCall struct {
	ID           string             `json:"id"`
	Type         string             `json:"type"`
	FunctionCall *llms.FunctionCall `json:"function,omitempty"`
}

func encode(chat llms.ChatMessage) (message, error) {
	m := message{Type: chat.GetType(), Content: chat.GetContent()}
	switch chat := chat.(type) {
	case llms.AIChatMessage:
		m.Role, m.FunctionCall, m.Reasoning = "assistant", chat.FunctionCall, chat.ReasoningContent
		for _, c := range chat.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, toolCall(c))
		}
	case llms.HumanChatMessage:
		m.Role = "user"
	case llms.SystemChatMessage:
		m.Role = "system"
	case llms.GenericChatMessage:
		m.Role, m.Name = chat.Role, chat.Name
	case llms.ToolChatMessage:
		m.Role, m.ToolCallID = "tool", chat.ID
	case llms.FunctionChatMessage:
		m.Role, m.Name = "function", chat.Name
	default:
		return m, fmt.Errorf("%w: %T", llms.ErrUnexpectedChatMessageType, chat)
	}
	return m, nil
}

func (m message) decode() (llms.ChatMessage, error) {
	switch m.Type {
	case llms.ChatMessageTypeAI:
		chat := llms.AIChatMessage{Content: m.Content, FunctionCall: m.FunctionCall, ReasoningContent: m.Reasoning}
		for _, c := range m.ToolCalls {
			chat.ToolCalls = append(chat.ToolCalls, llms.ToolCall(c))
		}
		return chat, nil
	case llms.ChatMessageTypeHuman:
		return llms.HumanChatMessage{Content: m.Content}, nil
	case llms.ChatMessageTypeSystem:
		return llms.SystemChatMessage{Content: m.Content}, nil
	case llms.ChatMessageTypeGeneric:
		return llms.GenericChatMessage{Content: m.Content, Role: m.Role, Name: m.Name}, nil
	case llms.ChatMessageTypeTool:
		return llms.ToolChatMessage{ID: m.ToolCallID, Content: m.Content}, nil
	case llms.ChatMessageTypeFunction:
		return llms.FunctionChatMessage{Name: m.Name, Content: m.Content}, nil
	}
	return nil, fmt.Errorf("%w: %q", llms.ErrUnexpectedChatMessageType, m.Type)
}
