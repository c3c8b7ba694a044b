package mcp

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/internal/plain"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// scheme is that of the addresses of branches: ctxdir://STORE/CONTEXT/BRANCH.
const scheme = "ctxdir"

func (l *library) addResources(s *sdk.Server) {
	store := l.store.Info().ID.String()
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if list, ok := r.(*sdk.ListResourcesRequest); ok {
				return l.resources(ctx, list.Params)
			}
			return next(ctx, method, r)
		}
	})
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "branch", Title: "A conversation", MIMEType: "text/plain", URITemplate: scheme + "://" + store + "/{context}/{branch}",
		Description: "The last messages of a branch of a context, as the tool read shows them.",
	}, l.resource)
}

// resources lists the active branches of the project's contexts, the most recently changed first, by the cursor of that list.
func (l *library) resources(ctx context.Context, p *sdk.ListResourcesParams) (*sdk.ListResourcesResult, error) {
	result := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, Cacheable: sdk.Cacheable{CacheScope: ownCache}}
	sc, err := l.scope(ctx, false)
	if nothing(err) {
		return result, nil
	}
	if err != nil {
		return nil, err
	}
	o := ctxdir.ListOptions{}
	if p != nil {
		o.Cursor = p.Cursor
	}
	last := ""
	for c, err := range l.store.List(ctx, o) {
		if errors.Is(err, ctxdir.ErrInvalid) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of this list"}
		}
		if err != nil {
			return nil, err
		}
		if !sc.known(c.ID) || c.Problem != nil {
			continue
		}
		if len(result.Resources) == pageSize {
			result.NextCursor = last
			break
		}
		r := &sdk.Resource{
			URI: l.address(c.ID, c.ActiveBranch), Name: oneLine(c.Title, 120), MIMEType: "text/plain",
			Description: plain.Count(c.Messages, "message"), Annotations: &sdk.Annotations{LastModified: c.UpdatedAt.UTC().Format(time.RFC3339)},
		}
		if r.Name == "" {
			r.Name = c.ID.String()
		}
		result.Resources = append(result.Resources, r)
		last = c.Cursor
	}
	return result, nil
}

// ownCache keeps what a store says out of caches that several users share.
const ownCache = "private"

// address is that of a branch.
func (l *library) address(id uuid.UUID, branch string) string {
	return scheme + "://" + l.store.Info().ID.String() + "/" + id.String() + "/" + url.PathEscape(branch)
}

// parse returns the context and the branch that an address names.
func (l *library) parse(address string) (id uuid.UUID, branch string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != scheme || u.Host != l.store.Info().ID.String() {
		return id, "", false
	}
	of, name, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	id, err = uuid.Parse(of)
	branch, uerr := url.PathUnescape(name)
	return id, branch, err == nil && uerr == nil && branch != ""
}

// resource reads the end of a branch.
func (l *library) resource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	id, name, ok := l.parse(r.Params.URI)
	if !ok {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	var result *sdk.CallToolResult
	err := l.context(ctx, id.String(), func(c *ctxdir.Context) error {
		b, err := c.Branch(name)
		if err != nil {
			return err
		}
		args := readArgs{Last: pageSize}
		from, to, err := args.span(ctx, b)
		if err == nil {
			result, err = l.messages(ctx, c, b, from, to, &args)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(sdk.ResourceNotFoundError(r.Params.URI), ctx.Err())
	}
	text := result.Content[0].(*sdk.TextContent).Text
	return &sdk.ReadResourceResult{
		Cacheable: sdk.Cacheable{CacheScope: ownCache},
		Contents:  []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: text}},
	}, nil
}

func (l *library) addPrompts(s *sdk.Server) {
	s.AddPrompt(&sdk.Prompt{
		Name: "recall", Title: "Recall earlier conversations", Description: "What earlier conversations say about a question",
		Arguments: []*sdk.PromptArgument{{Name: "question", Required: true}},
	}, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		result, _, err := l.recall(ctx, nil, recallArgs{Question: r.Params.Arguments["question"]})
		if err != nil {
			return nil, err
		}
		return prompt("Answer from these passages of earlier conversations, and name the ones you used: "+
			r.Params.Arguments["question"], result), nil
	})
	s.AddPrompt(&sdk.Prompt{
		Name: "hand_over", Title: "Go on where another conversation ended", Description: "The end of a conversation, for another agent to go on",
		Arguments: []*sdk.PromptArgument{{Name: "context", Required: true}, {Name: "branch"}},
	}, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		result, _, err := l.read(ctx, nil, readArgs{Context: r.Params.Arguments["context"], Branch: r.Params.Arguments["branch"], Last: 20})
		if err != nil {
			return nil, err
		}
		return prompt("Another agent worked on this. Say in a few sentences where it stands, what was decided, and what is open. "+
			"Then wait for the user.", result), nil
	})
}

// prompt is an instruction of the server, with quotations below it.
func prompt(instruction string, quoted *sdk.CallToolResult) *sdk.GetPromptResult {
	return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
		{Role: "user", Content: &sdk.TextContent{Text: instruction}}, {Role: "user", Content: quoted.Content[0]},
	}}
}
