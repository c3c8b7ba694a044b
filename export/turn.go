package export

import (
	"github.com/ctxdir/ctxdir/internal/conversation"
	"github.com/ctxdir/ctxdir/internal/record"
	"github.com/ctxdir/ctxdir/internal/view"
	"github.com/ctxdir/ctxdir/transcript"
)

// turnOf is a turn after redaction.
func (x *writer) turnOf(t *transcript.Turn[*record.Loaded]) turn {
	m := t.Message
	is := turn{
		position: m.Position, voice: t.Voice, speaker: x.redactor.Text(conversation.Speaker(m.Message)), at: m.CreatedAt,
		continues: t.Continues,
	}
	for i := range t.Parts {
		is.parts = append(is.parts, x.partOf(m, &t.Parts[i]))
	}
	if m.Unavailable != nil {
		why := x.redactor.Text(m.Unavailable.Error())
		is.unavailable = &why
	}
	return is
}

func (x *writer) partOf(m *record.Loaded, p *transcript.Part) part {
	is := part{kind: p.Kind, failed: p.Failed}
	hidden := x.o.Tools == ToolsNone && (p.Kind == transcript.Call || p.Kind == transcript.Result)
	if hidden {
		return is
	}
	is.name, is.text = x.redactor.Text(p.Name), x.text(p.Text)
	switch p.Kind {
	case transcript.Call:
		x.callOf(&is, p)
	case transcript.Attachment:
		x.imageOf(&is, m, p)
	}
	return is
}

// callOf adds what people see of a call. It is made of the redacted arguments, and searched again: what a pattern did not
// find among them it may find in the summary.
func (x *writer) callOf(is *part, p *transcript.Part) {
	redacted := transcript.Part{Kind: p.Kind, Name: is.name.String(), Text: is.text.String()}
	is.summary = x.quiet.Text(redacted.Summary())
	diff := redacted.Diff()
	is.changes = diff != nil
	if is.changes {
		is.changed = transcript.Changed(diff)
	}
	if x.o.Tools == ToolsShort {
		return
	}
	for _, l := range diff {
		is.diff = append(is.diff, x.quiet.Text(l))
	}
	for i := range p.Results {
		r := &p.Results[i]
		is.results = append(is.results, part{kind: r.Kind, failed: r.Failed, text: x.text(r.Text)})
	}
}

const (
	// maxEmbedded bounds an image in the page, in bytes.
	maxEmbedded = 16 << 20
)

// embeddedTypes are the images that a page shows. SVG is not among them: it can hold scripts.
var embeddedTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// imageOf adds the content of an image to a page. An image in which something is replaced is none.
func (x *writer) imageOf(is *part, m *record.Loaded, p *transcript.Part) {
	f := p.File
	if x.o.Format != HTML || f == nil || !embeddedTypes[f.MediaType] {
		return
	}
	data := view.Base64(m.Message, f, maxEmbedded)
	if is.data = x.redactor.Text(data); data != "" && is.data.String() == data {
		is.media = f.MediaType
	}
}
