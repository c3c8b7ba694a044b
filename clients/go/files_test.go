package client_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir"
	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/clients/go"
	"github.com/google/uuid"
)

// reading is a message whose tool call reads a file in a folder.
func reading(path string) json.RawMessage {
	arguments, _ := json.Marshal(map[string]any{"path": path, "start_line": 3, "end_line": 9})
	text, _ := json.Marshal(string(arguments))
	return json.RawMessage(`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":` +
		string(text) + `}}]}`)
}

// files uses the operations for files, references, sizes and blobs.
func (k *kit) files(id string) {
	k.Helper()
	ctx := k.Context()
	for _, path := range []string{"a/one.go", "b/two.md"} {
		if _, err := k.c.Append(ctx, id, "main", path, reading(path)); err != nil {
			k.Fatal(err)
		}
	}
	last := k.last(id)
	first := ok[*client.ListFilesResponse](k, 200)(k.c.ListFilesWithResponse(ctx, &client.ListFilesParams{Limit: ptr(1)})).JSON200
	second := ok[*client.ListFilesResponse](k, 200)(k.c.ListFilesWithResponse(ctx, &client.ListFilesParams{
		Limit: ptr(1), Cursor: first.Next,
	})).JSON200
	if len(first.Files) != 1 || first.Files[0].Path != "b/two.md" || len(second.Files) != 1 || second.Files[0].Path != "a/one.go" {
		k.Errorf("two pages of files: %+v, %+v", first, second)
	}
	for path, want := range map[string]int{
		"access=read": 2, "access=written": 0, "path=*.go": 1, "is_text=true&path=*.md": 1, "context=" + id: 2,
		"branch=third": 0, "since=2100-01-01T00:00:00Z": 0,
	} {
		var got client.FileList
		if err := json.Unmarshal([]byte(k.get("/v1/files?"+path)), &got); err != nil || len(got.Files) != want {
			k.Errorf("%s: %d files, want %d: %v", path, len(got.Files), want, err)
		}
	}
	paths := ok[*client.CountPathsResponse](k, 200)(k.c.CountPathsWithResponse(ctx, &client.CountPathsParams{Path: ptr("*.go")})).JSON200
	if len(paths.Paths) != 1 || paths.Paths[0].Path != "a/one.go" || paths.Paths[0].Times != 1 || paths.Paths[0].Contexts != 1 {
		k.Errorf("paths: %+v", paths)
	}
	ok[*client.CountPathsResponse](k, 400)(k.c.CountPathsWithResponse(ctx, &client.CountPathsParams{Path: ptr("[")}))
	refs := ok[*client.ListMessageReferencesResponse](k, 200)(k.c.ListMessageReferencesWithResponse(ctx, id, "main", last, nil)).JSON200
	if len(refs.References) != 1 || refs.References[0].File != "b/two.md" || refs.References[0].Origin != "tool" {
		k.Errorf("references: %+v", refs)
	}
	only := &client.ListMessageReferencesParams{Stored: ptr(true)}
	stored := ok[*client.ListMessageReferencesResponse](k, 200)(
		k.c.ListMessageReferencesWithResponse(ctx, id, "main", last, only)).JSON200
	if len(stored.References) != 0 {
		k.Errorf("stored references: %+v", stored)
	}
	branch := ok[*client.ListReferencesResponse](k, 200)(k.c.ListReferencesWithResponse(ctx, id, "main", nil))
	if bytes.Count(branch.Body, []byte{'\n'}) != 2 || !bytes.Contains(branch.Body, []byte("a/one.go")) {
		k.Errorf("references of a branch: %s", branch.Body)
	}
	ok[*client.ListReferencesResponse](k, 400)(k.c.ListReferencesWithResponse(ctx, id, "main", &client.ListReferencesParams{
		From: ptr(int64(2)), To: ptr(int64(1)),
	}))
	k.log(id)
	sizes := ok[*client.GetSizesResponse](k, 200)(k.c.GetSizesWithResponse(ctx, id)).JSON200
	if sizes.Messages == 0 || len(sizes.Branches) != 4 || sizes.Branches[0].Branch != "main" {
		k.Errorf("sizes: %+v", sizes)
	}
	k.blob()
}

// blob reads a payload by its hash alone.
func (k *kit) blob() {
	k.Helper()
	if k.store == nil {
		return
	}
	ctx := k.Context()
	c, err := k.store.Create(ctx, ctxdir.Metadata{})
	if err != nil {
		k.Fatal(err)
	}
	text := strings.Repeat("other ", 10_000)
	_, err = c.Active().Append(ctx, ctxdir.Draft{Body: json.RawMessage(`{"role":"user","content":"` + text + `"}`)})
	if err == nil {
		err = c.Flush(ctx)
	}
	if err != nil {
		k.Fatal(err)
	}
	all, err := c.Active().Last(ctx, 1)
	if err != nil {
		k.Fatal(err)
	}
	payloads, err := all[0].Payloads()
	if err != nil || len(payloads) != 1 {
		k.Fatal(payloads, err)
	}
	sum := payloads[0].SHA256
	if err := c.Close(); err != nil {
		k.Fatal(err)
	}
	whole := ok[*client.GetBlobResponse](k, 200)(k.c.GetBlobWithResponse(ctx, sum, nil))
	if string(whole.Body) != text || whole.HTTPResponse.Header.Get("ETag") != `"`+sum+`"` {
		k.Errorf("%d bytes of the blob, %v", len(whole.Body), whole.HTTPResponse.Header)
	}
	part := ok[*client.GetBlobResponse](k, 206)(k.c.GetBlobWithResponse(ctx, sum, &client.GetBlobParams{Range: ptr("bytes=6-10")}))
	if string(part.Body) != "other" {
		k.Errorf("a range: %q", part.Body)
	}
	ok[*client.GetBlobResponse](k, 304)(k.c.GetBlobWithResponse(ctx, sum, &client.GetBlobParams{IfNoneMatch: ptr(`"` + sum + `"`)}))
	ok[*client.GetBlobResponse](k, 404)(k.c.GetBlobWithResponse(ctx, strings.Repeat("0", 64), nil))
}

// TestFilesOfNoMessage: nothing in a request that is no id, hash or condition of the contract is used.
func TestFilesOfNoMessage(t *testing.T) {
	k := newKit(t, api.Options{})
	ctx := t.Context()
	made := ok[*client.CreateContextResponse](k, 201)(k.c.CreateContextWithResponse(ctx, nil, client.NewContext{}))
	id := made.JSON201.ID.String()
	none := uuid.MustParse("01900000-0000-7000-8000-00000000000a")
	ok[*client.ListMessageReferencesResponse](k, 404)(k.c.ListMessageReferencesWithResponse(ctx, id, "main", none, nil))
	ok[*client.GetSizesResponse](k, 404)(k.c.GetSizesWithResponse(ctx, "ffffffff"))
	ok[*client.ListFilesResponse](k, 400)(k.c.ListFilesWithResponse(ctx, &client.ListFilesParams{Cursor: ptr("x")}))
	ok[*client.ListFilesResponse](k, 400)(k.c.ListFilesWithResponse(ctx, &client.ListFilesParams{Path: ptr("[")}))
}

// log reads the changes of a context page by page.
func (k *kit) log(id string) {
	k.Helper()
	var all []client.LoggedChange
	after := int64(0)
	for {
		page := ok[*client.ListChangesResponse](k, 200)(k.c.ListChangesWithResponse(k.Context(), id, &client.ListChangesParams{
			After: &after, Limit: ptr(1),
		})).JSON200
		if page.Unlisted != 0 || len(page.Changes) == 0 {
			k.Fatalf("changes after %d: %+v", after, page)
		}
		all = append(all, page.Changes...)
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	whole := ok[*client.ListChangesResponse](k, 200)(k.c.ListChangesWithResponse(k.Context(), id, nil)).JSON200
	if whole.Next != nil || !reflect.DeepEqual(all, whole.Changes) {
		k.Errorf("page by page: %+v\nat once: %+v", all, whole.Changes)
	}
	ops := map[string]bool{}
	for _, c := range whole.Changes {
		ops[c.Op] = true
	}
	for _, op := range []string{"append", "fork", "meta"} {
		if !ops[op] {
			k.Errorf("no change is %q: %v", op, ops)
		}
	}
}
