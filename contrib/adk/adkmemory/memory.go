// Package adkmemory is a memory service for ADK over the sessions of a ctxdir store: what a user said in earlier sessions.
// Only programs that import it compile the search index and the tokenizer.
package adkmemory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/contrib/sessions"
	"github.com/ctxdir/ctxdir/contrib/sessions/memories"
	"google.golang.org/adk/memory"
	"google.golang.org/adk/session"
	"google.golang.org/genai"
)

// tool is the name of ADK in the store, as in package adk.
const tool = "adk"

// Service is a [memory.Service]. It finds the passages that answer a query best, by words, their forms, and dates, within
// a budget of tokens.
type Service struct{ memories *memories.Service }

var _ memory.Service = (*Service)(nil)

// New returns the memory of a store with the sessions of ADK.
func New(store *ctxdir.Store) *Service { return &Service{memories.New(store, tool)} }

// AddSessionToMemory implements [memory.Service]. The store must have the session. Events that are appended later are in
// memory, too.
func (s *Service) AddSessionToMemory(ctx context.Context, sess session.Session) error {
	if sess == nil {
		return errors.New("add session to memory: session is nil")
	}
	key := sessions.Key{App: sess.AppName(), User: sess.UserID(), ID: sess.ID()}
	if err := s.memories.Add(ctx, key); err != nil {
		return fmt.Errorf("add session to memory: %w", err)
	}
	return nil
}

// event is what memory needs of a stored event.
type event struct {
	ID             string         `json:"id"`
	Author         string         `json:"author"`
	Timestamp      time.Time      `json:"timestamp"`
	Content        *genai.Content `json:"content"`
	CustomMetadata map[string]any `json:"customMetadata"`
}

// SearchMemory implements [memory.Service]. The content of an entry is the part of the event that matters.
func (s *Service) SearchMemory(ctx context.Context, req *memory.SearchRequest) (*memory.SearchResponse, error) {
	found, err := s.memories.Search(ctx, req.AppName, req.UserID, req.Query)
	if err != nil {
		return nil, fmt.Errorf("search memory: %w", err)
	}
	res := &memory.SearchResponse{}
	for _, m := range found {
		var e event
		if err := json.Unmarshal(m.Body, &e); err != nil {
			return nil, fmt.Errorf("search memory: %w", err)
		}
		role := genai.Role(genai.RoleUser)
		if e.Content != nil && e.Content.Role == genai.RoleModel {
			role = genai.RoleModel
		}
		res.Memories = append(res.Memories, memory.Entry{
			ID: e.ID, Content: genai.NewContentFromText(m.Text, role), Author: e.Author, Timestamp: e.Timestamp, CustomMetadata: e.CustomMetadata,
		})
	}
	return res, nil
}
