package client_test

import (
	"encoding/json"
	"strings"

	"github.com/ctxdir/ctxdir/clients/go"
)

// export writes files of a branch with made-up secrets.
func (k *kit) export(id string) {
	k.Helper()
	ctx := k.Context()
	secret := "ghp_" + strings.Repeat("a8Kd92mXq", 4)
	said := json.RawMessage(`{"role":"user","content":"In /home/ada with ` + secret + ` and /home/bob and the Heron"}`)
	all, err := k.c.Append(ctx, id, "main", "", said)
	if err != nil {
		k.Fatal(err)
	}
	words := []string{"heron"}
	p := ok[*client.PreviewExportResponse](k, 200)(
		k.c.PreviewExportWithResponse(ctx, id, client.ExportRequest{Format: "html", Words: &words})).JSON200
	found := map[string]int64{}
	for _, kind := range p.Kinds {
		found[string(kind.Kind)] = kind.Count
		if kind.Kind == "path" && (len(kind.Places) != 2 || kind.Places[0].Text != "/home/ada" || kind.Places[1].Text != "/home/bob" ||
			kind.Places[0].Before != "In " || *kind.Places[0].ID != all[0].ID) {
			k.Errorf("places: %+v", kind.Places)
		}
	}
	if len(p.Kinds) != 7 || found["path"] != 2 || found["token"] != 1 || found["word"] != 1 || found["mail"] != 0 || p.Missing != 0 {
		k.Errorf("preview: %v, %d missing", found, p.Missing)
	}
	for _, format := range []client.ExportRequestFormat{"html", "markdown", "jsonl"} {
		r := client.ExportRequest{Format: format, Branch: ptr("main"), Replace: &[]client.SecretKind{"token"}, Words: &words}
		got := string(ok[*client.ExportContextResponse](k, 200)(k.c.ExportContextWithResponse(ctx, id, r)).Body)
		if strings.Contains(got, secret) || !strings.Contains(got, "In /home/ada with [token] and /home/bob and the [word]") {
			k.Errorf("%s: %s", format, got)
		}
	}
	whole := client.ExportRequest{Format: "jsonl", AllBranches: ptr(true)}
	got := ok[*client.ExportContextResponse](k, 200)(k.c.ExportContextWithResponse(ctx, id, whole))
	if !strings.Contains(string(got.Body), secret) {
		k.Error("without kinds, something is replaced")
	}
	for _, bad := range []client.ExportRequest{
		{Format: "pdf"}, {Format: "html", Replace: &[]client.SecretKind{"keys"}}, {Format: "html", Words: &[]string{" "}},
		{Format: "html", Tools: ptr(client.ExportRequestTools("some"))}, {Format: "html", AllBranches: ptr(true), Branch: ptr("main")},
	} {
		ok[*client.ExportContextResponse](k, 400)(k.c.ExportContextWithResponse(ctx, id, bad))
		ok[*client.PreviewExportResponse](k, 400)(k.c.PreviewExportWithResponse(ctx, id, bad))
	}
	gone := client.ExportRequest{Format: "html", Branch: ptr("gone")}
	ok[*client.ExportContextResponse](k, 404)(k.c.ExportContextWithResponse(ctx, id, gone))
}
