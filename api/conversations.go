package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
)

// The operations of the Conversations API of OpenAI that its SDKs use for sessions: see
// https://platform.openai.com/docs/api-reference/conversations.
// They are not in openapi.yaml, since others define them. A conversation is a context, an item is a message, byte for byte.
var conversationOperations = []operation{
	{method: "POST", path: "/v1/conversations", writes: true, large: true, serve: (*Server).createConversation},
	{method: "GET", path: "/v1/conversations/{conversation}", serve: (*Server).getConversation},
	{method: "DELETE", path: "/v1/conversations/{conversation}", writes: true, serve: (*Server).removeConversation},
	{method: "GET", path: "/v1/conversations/{conversation}/items", serve: (*Server).listItems},
	{method: "POST", path: "/v1/conversations/{conversation}/items", writes: true, large: true, serve: (*Server).addItems},
	{method: "DELETE", path: "/v1/conversations/{conversation}/items/{item}", writes: true, serve: (*Server).removeItem},
}

// maxItemID bounds the id that an item brings along, in bytes.
const maxItemID = 256

type conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"` // seconds since 1970
	Metadata  map[string]string `json:"metadata"`
}

func conversationOf(c *ctxdir.Context) conversation {
	m := c.Metadata()
	id := c.ID()
	labels := m.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return conversation{"conv_" + hex.EncodeToString(id[:]), "conversation", m.CreatedAt.Unix(), labels}
}

// conversation returns the context that the path names.
func (x *Server) conversation(r *http.Request, f func(c *ctxdir.Context) error) error {
	name, ok := strings.CutPrefix(r.PathValue("conversation"), "conv_")
	id, err := uuid.Parse(name)
	if !ok || err != nil || len(name) != 32 {
		return problem(codeNotFound, "no conversation has this id")
	}
	return x.store.of(r).use(r.Context(), id, f)
}

func (x *Server) createConversation(w http.ResponseWriter, r *http.Request) error {
	var n struct {
		Metadata map[string]string `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := readOther(r, &n); err != nil {
		return err
	}
	if len(n.Items) > maxLines {
		return invalid("items: more than %d", maxLines)
	}
	c, err := x.store.of(r).s.Create(r.Context(), ctxdir.Metadata{Labels: n.Metadata})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := appendItems(r.Context(), c, n.Items, ""); err != nil {
		return err
	}
	return sendDocument(w, http.StatusOK, conversationOf(c))
}

func (x *Server) getConversation(w http.ResponseWriter, r *http.Request) error {
	return x.conversation(r, func(c *ctxdir.Context) error { return sendDocument(w, http.StatusOK, conversationOf(c)) })
}

// removeConversation moves the context to the trash.
func (x *Server) removeConversation(w http.ResponseWriter, r *http.Request) error {
	var id uuid.UUID
	err := x.conversation(r, func(c *ctxdir.Context) error {
		id = c.ID()
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := x.store.of(r).s.Remove(r.Context(), id); err != nil {
		return err
	}
	return sendDocument(w, http.StatusOK, map[string]any{
		"id": r.PathValue("conversation"), "object": "conversation.deleted", "deleted": true,
	})
}

func (x *Server) addItems(w http.ResponseWriter, r *http.Request) error {
	var n struct {
		Items []json.RawMessage `json:"items"`
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if err := readOther(r, &n); err != nil {
		return err
	}
	if len(n.Items) == 0 || len(n.Items) > maxLines {
		return invalid("items: expected 1 to %d", maxLines)
	}
	return x.conversation(r, func(c *ctxdir.Context) error {
		added, err := appendItems(r.Context(), c, n.Items, key)
		if err != nil {
			return err
		}
		return sendDocument(w, http.StatusOK, listOf(added, false))
	})
}

// appendItems appends items as one commit, and returns them as they are shown. An item that brings its id along can be added
// again, and with an Idempotency-Key all of them.
func appendItems(ctx context.Context, c *ctxdir.Context, items []json.RawMessage, key string) ([]shownItem, error) {
	if len(items) == 0 {
		return nil, nil
	}
	b, drafts := c.Active(), make([]ctxdir.Draft, len(items))
	for i, item := range items {
		var known struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(item, &known) != nil || len(known.ID) > maxItemID {
			return nil, invalid("items[%d]: expected an object, with an id of at most %d bytes if any", i, maxItemID)
		}
		drafts[i] = ctxdir.Draft{ID: uuid.Must(uuid.NewV7()), Body: item, OriginID: known.ID}
		switch {
		case known.ID != "":
			drafts[i].ID = uuid.NewSHA1(c.ID(), []byte(known.ID))
		case key != "":
			drafts[i].ID = uuid.NewSHA1(c.ID(), fmt.Appendf(nil, "%s/%s/%d", b.Name(), key, i))
		}
	}
	done, err := b.AppendBatch(ctx, drafts)
	if err != nil {
		return nil, err
	}
	shown := make([]shownItem, len(items))
	for i := range items {
		shown[i] = showItem(done[i].ID, items[i])
	}
	return shown, nil
}

// listItems lists items, the newest first unless order is asc.
func (x *Server) listItems(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	p := parametersOf(r)
	limit, order, after := p.limit(20, 100), p.text("order"), p.text("after")
	p.all("include") // what an item has is there
	if err := p.done(); err != nil {
		return err
	}
	if order != "" && order != "asc" && order != "desc" {
		return invalid("order: %q is neither asc nor desc", short(q.Get("order")))
	}
	return x.conversation(r, func(c *ctxdir.Context) error {
		b := c.Active()
		end, err := b.Len(r.Context())
		if err != nil {
			return err
		}
		from := int64(-1)
		if order != "asc" {
			from = end
		}
		if after != "" {
			m, err := itemOf(r.Context(), b, c.ID(), after)
			if err != nil {
				return err
			}
			from = m.Position
		}
		var shown []shownItem
		add := func(m *ctxdir.Message) error {
			if errors.Is(m.Unavailable, ctxdir.ErrErased) {
				return nil
			}
			if m.Unavailable != nil {
				return m.Unavailable
			}
			body, err := m.Body(r.Context())
			shown = append(shown, showItem(m.ID, body))
			return err
		}
		if order == "asc" {
			err = ascending(r.Context(), b, from+1, end, limit, &shown, add)
		} else {
			err = descending(r.Context(), b, from, limit, &shown, add)
		}
		if err != nil {
			return err
		}
		more := len(shown) > limit
		return sendDocument(w, http.StatusOK, listOf(shown[:min(limit, len(shown))], more))
	})
}

// ascending adds messages from a position on, until there is one more than limit.
func ascending(
	ctx context.Context, b *ctxdir.Branch, from, end int64, limit int, shown *[]shownItem, add func(*ctxdir.Message) error,
) error {
	for m, err := range b.Messages(ctx, from, end) {
		if err == nil {
			err = add(m)
		}
		if err != nil || len(*shown) > limit {
			return err
		}
	}
	return nil
}

// descending adds messages before a position, the last one first, likewise.
func descending(ctx context.Context, b *ctxdir.Branch, to int64, limit int, shown *[]shownItem, add func(*ctxdir.Message) error) error {
	for to > 0 && len(*shown) <= limit {
		from := max(0, to-int64(limit)-1)
		part, err := b.Range(ctx, from, to)
		if err != nil {
			return err
		}
		for i := len(part) - 1; i >= 0 && len(*shown) <= limit; i-- {
			if err := add(part[i]); err != nil {
				return err
			}
		}
		to = from
	}
	return nil
}

// removeItem removes the last item by a rewind, and erases another one.
func (x *Server) removeItem(w http.ResponseWriter, r *http.Request) error {
	return x.conversation(r, func(c *ctxdir.Context) error {
		b := c.Active()
		m, err := itemOf(r.Context(), b, c.ID(), r.PathValue("item"))
		if err != nil {
			return err
		}
		end, err := b.Len(r.Context())
		if err != nil {
			return err
		}
		if m.Position == end-1 {
			err = b.Rewind(r.Context(), m.Position)
		} else {
			_, err = x.store.of(r).s.Erase(r.Context(), c.ID(), []uuid.UUID{m.ID}, ctxdir.EraseOptions{})
		}
		if err != nil {
			return err
		}
		return sendDocument(w, http.StatusOK, conversationOf(c))
	})
}

// itemOf returns the message of an item: by the id that it brought along, or by the one that it was given.
func itemOf(ctx context.Context, b *ctxdir.Branch, conversation uuid.UUID, id string) (*ctxdir.Message, error) {
	m, err := b.Message(ctx, uuid.NewSHA1(conversation, []byte(id)))
	if _, given, ok := strings.Cut(id, "_"); errors.Is(err, ctxdir.ErrNotExist) && ok && len(given) == 32 {
		if u, perr := uuid.Parse(given); perr == nil {
			m, err = b.Message(ctx, u)
		}
	}
	if errors.Is(err, ctxdir.ErrNotExist) || err == nil && errors.Is(m.Unavailable, ctxdir.ErrErased) {
		return nil, problem(codeNotFound, "no item has this id")
	}
	return m, err
}
