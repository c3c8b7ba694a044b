package mcp

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/ctxdir/ctxdir"
	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// scheme is that of the addresses of branches: ctxdir://STORE/CONTEXT/BRANCH.
const scheme = "ctxdir"

func (l *library) addResources(s *sdk.Server) {
	store := l.store.Info().ID.String()
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "branch", Title: "A conversation", MIMEType: "text/plain", URITemplate: scheme + "://" + store + "/{context}/{branch}",
		Description: "The last messages of a branch of a context, as the tool read shows them.",
	}, l.resource)
}

// resource reads the end of a branch.
func (l *library) resource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	u, err := url.Parse(r.Params.URI)
	if err != nil || u.Scheme != scheme || u.Host != l.store.Info().ID.String() {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	id, branch, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	name, err := url.PathUnescape(branch)
	if _, perr := uuid.Parse(id); perr != nil || err != nil || name == "" {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	var result *sdk.CallToolResult
	err = l.context(ctx, id, func(c *ctxdir.Context) error {
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
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: text}}}, nil
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
