package client_test

import (
	"strings"

	"github.com/ctxdir/ctxdir/clients/go"
)

// artifacts publishes two versions of a file, and reads them.
func (k *kit) artifacts() {
	k.Helper()
	ctx := k.Context()
	put := func(status int, name, media, content string, version *int64) *client.PutArtifactResponse {
		k.Helper()
		p := &client.PutArtifactParams{Version: version}
		return ok[*client.PutArtifactResponse](k, status)(k.c.PutArtifactWithBodyWithResponse(ctx, name, p, media, strings.NewReader(content)))
	}
	first := put(201, "plan.txt", "text/plain", "first", nil).JSON201
	same := put(200, "plan.txt", "text/plain", "first", ptr(int64(1))).JSON200
	if first.Version != 1 || same.Version != 1 || first.Sha256 != same.Sha256 || same.StoredAt == nil {
		k.Errorf("%+v, then %+v", first, same)
	}
	if second := put(201, "plan.txt", "text/plain", "second", ptr(int64(2))).JSON201; second.Version != 2 {
		k.Errorf("%+v", second)
	}
	put(409, "plan.txt", "text/plain", "third", ptr(int64(2)))
	put(400, "plan.txt", "text/plain", "", nil)
	put(415, "plan.txt", "", "third", nil)
	get := func(status int, name string, version *int64) *client.GetArtifactResponse {
		k.Helper()
		return ok[*client.GetArtifactResponse](k, status)(k.c.GetArtifactWithResponse(ctx, name, &client.GetArtifactParams{Version: version}))
	}
	for content, version := range map[string]*int64{"first": ptr(int64(1)), "second": nil} {
		got := get(200, "plan.txt", version)
		if string(got.Body) != content || got.HTTPResponse.Header.Get("Artifact-Media-Type") != "text/plain" {
			k.Errorf("%s: %s %v", content, got.Body, got.HTTPResponse.Header)
		}
	}
	get(404, "plan.txt", ptr(int64(3)))
	get(404, "none.txt", nil)
	list := ok[*client.ListArtifactsResponse](k, 200)(k.c.ListArtifactsWithResponse(ctx, &client.ListArtifactsParams{Limit: ptr(10)})).JSON200
	if len(list.Artifacts) != 1 || list.Artifacts[0].Versions != 2 || list.Artifacts[0].Name != "plan.txt" {
		k.Errorf("%+v", list)
	}
}
