package client_test

import (
	"bytes"
	"flag"
	"fmt"
	"html/template"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ctxdir/ctxdir/api"
	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "write the page anew")

// TestDocs compares docs.html, which the server shows at /docs, with what openapi.yaml says. With -update it writes it.
func TestDocs(t *testing.T) {
	const path = "../../api/docs.html"
	var page bytes.Buffer
	if err := docsTemplate.Execute(&page, docsOf(specification(t))); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page.Bytes()) {
		t.Error("docs.html is not what openapi.yaml says; run go test -run TestDocs -update ./clients/go")
	}
}

// docs is what the page shows.
type docs struct {
	Introduction []string
	Tags         []docsTag
	Codes        []api.Code
	Schemas      []docsSchema
}

type docsTag struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary string
	Description               []string
	Public                    bool
	Parameters                []docsMember
	Bodies                    []docsBody
	Answers                   []docsBody
}

type docsBody struct {
	Status, Media, Type, Schema, Description string
}

type docsMember struct {
	Name, In, Type, Schema, Description string
	Required                            bool
}

type docsSchema struct {
	Name    string
	Members []docsMember
}

func docsOf(doc *openapi3.T) (d docs) {
	d.Introduction, d.Codes = paragraphs(doc.Info.Description), api.Codes
	for _, tag := range doc.Tags {
		dt := docsTag{Name: tag.Name, Description: tag.Description}
		for _, path := range doc.Paths.InMatchingOrder() {
			item := doc.Paths.Find(path)
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				if op := item.GetOperation(method); op != nil && slices.Contains(op.Tags, tag.Name) {
					dt.Operations = append(dt.Operations, operationOf(method, path, item, op))
				}
			}
		}
		slices.SortStableFunc(dt.Operations, func(a, b docsOperation) int { return strings.Compare(a.Path, b.Path) })
		d.Tags = append(d.Tags, dt)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		d.Schemas = append(d.Schemas, docsSchema{name, membersOf(doc.Components.Schemas[name].Value)})
	}
	return d
}

func operationOf(method, path string, item *openapi3.PathItem, op *openapi3.Operation) docsOperation {
	o := docsOperation{
		ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Description: paragraphs(op.Description),
		Public: op.Security != nil && len(*op.Security) == 0,
	}
	for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
		kind, schema := typeOf(p.Value.Schema)
		o.Parameters = append(o.Parameters, docsMember{p.Value.Name, p.Value.In, kind, schema, p.Value.Description, p.Value.Required})
	}
	if op.RequestBody != nil {
		o.Bodies = bodiesOf("", "", op.RequestBody.Value.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
		r := op.Responses.Value(status).Value
		if status == "4XX" || status == "5XX" {
			continue
		}
		o.Answers = append(o.Answers, bodiesOf(status, *r.Description, r.Content)...)
	}
	return o
}

func bodiesOf(status, description string, content openapi3.Content) (all []docsBody) {
	for _, media := range slices.Sorted(maps.Keys(content)) {
		kind, schema := typeOf(content[media].Schema)
		all = append(all, docsBody{status, media, kind, schema, description})
	}
	if len(content) == 0 {
		all = append(all, docsBody{Status: status, Description: description})
	}
	return all
}

// typeOf says what a schema takes, and the name of the schema if it has one.
func typeOf(ref *openapi3.SchemaRef) (kind, schema string) {
	if ref == nil || ref.Value == nil {
		return "any", ""
	}
	if name, ok := strings.CutPrefix(ref.Ref, "#/components/schemas/"); ok {
		return name, name
	}
	v := ref.Value
	var of []string
	for _, one := range v.OneOf {
		name, _ := typeOf(one)
		of = append(of, name)
	}
	switch {
	case len(of) > 0:
		return strings.Join(of, " or "), ""
	case len(v.Enum) > 0:
		for _, e := range v.Enum {
			of = append(of, fmt.Sprint(e))
		}
		return strings.Join(of, ", "), ""
	case v.Type == nil:
		return "any", ""
	case v.Type.Is("array"):
		kind, schema = typeOf(v.Items)
		return "list of " + kind, schema
	case v.Format == "uuid" || v.Format == "date-time" || v.Format == "binary":
		return v.Format, ""
	}
	kind = v.Type.Slice()[0]
	if v.Default != nil && fmt.Sprint(v.Default) != "false" {
		kind += fmt.Sprintf(", default %v", v.Default)
	}
	return kind, ""
}

func membersOf(s *openapi3.Schema) (all []docsMember) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		ref := s.Properties[name]
		kind, schema := typeOf(ref)
		m := docsMember{Name: name, Type: kind, Schema: schema, Required: slices.Contains(s.Required, name)}
		if schema == "" || ref.Ref == "" {
			m.Description = ref.Value.Description
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b docsMember) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return all
}

func paragraphs(text string) (all []string) {
	for p := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if p = strings.Join(strings.Fields(p), " "); p != "" {
			all = append(all, p)
		}
	}
	return all
}

// prose marks what stands between backquotes as code.
func prose(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String()) //nolint:gosec // escaped above
}

var docsTemplate = template.Must(template.New("docs.tmpl").Funcs(template.FuncMap{"prose": prose}).ParseFiles("testdata/docs.tmpl"))
