package blob

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

// TestSchemas: where the common schemas put binary data, it is found, whatever the threshold.
func TestSchemas(t *testing.T) {
	raw := noise(1000)
	std, url := base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw)
	unpadded, urlUnpadded := strings.TrimRight(std, "="), strings.TrimRight(url, "=")
	for _, c := range []struct {
		name, body, media string
		encoding          Encoding
	}{
		{"Anthropic", `{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + std + `"}}]}`, "image/png",
			Base64},
		{"Anthropic, data first", `{"source":{"data":"` + std + `","media_type":"image/png","type":"base64"}}`, "image/png", Base64},
		{"OpenAI image_url", `{"content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,` + std + `"}}]}`, "image/jpeg", Base64},
		{"OpenAI Responses", `{"type":"input_image","image_url":"data:image/jpeg;base64,` + std + `"}`, "image/jpeg", Base64},
		{"OpenAI input_audio", `{"type":"input_audio","input_audio":{"data":"` + std + `","format":"wav"}}`, "", Base64},
		{"OpenAI audio", `{"audio":{"id":"a","expires_at":1,"data":"` + std + `","transcript":"Hi"}}`, "", Base64},
		{"OpenAI file", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + std + `"}}`,
			"application/pdf", Base64},
		{"OpenAI image call", `{"type":"image_generation_call","output_format":"png","result":"` + std + `"}`, "", Base64},
		{"OpenAI Images", `{"data":[{"b64_json":"` + std + `"}]}`, "", Base64},
		{"Gemini", `{"parts":[{"inlineData":{"mimeType":"image/webp","data":"` + std + `"}}]}`, "image/webp", Base64},
		{"Gemini, Python", `{"inline_data":{"data":"` + url + `","mime_type":"image/webp"}}`, "image/webp", Base64URL},
		{"MCP image", `{"type":"image","data":"` + std + `","mimeType":"image/png"}`, "image/png", Base64},
		{"MCP resource", `{"resource":{"uri":"file:///a","mimeType":"application/pdf","blob":"` + std + `"}}`, "application/pdf", Base64},
		{"Bedrock", `{"image":{"format":"png","source":{"bytes":"` + std + `"}}}`, "", Base64},
		{"Ollama", `{"role":"user","images":["` + std + `"]}`, "", Base64},
		{"AI SDK", `{"type":"image","image":"` + std + `","mediaType":"image/gif"}`, "image/gif", Base64},
		{"LangChain", `{"type":"image","source_type":"base64","data":"` + std + `","mime_type":"image/gif"}`, "image/gif", Base64},
		{"content with encoding", `{"content":"` + std + `","encoding":"base64"}`, "", Base64},
		{"unpadded", `{"format":"wav","data":"` + unpadded + `"}`, "", Base64Unpadded},
		{"URL-safe, unpadded", `{"format":"wav","data":"` + urlUnpadded + `"}`, "", Base64URLUnpadded},
		{"PHP", `{"format":"wav","data":"` + strings.ReplaceAll(std, "/", `\/`) + `"}`, "", Base64},
		{"media type with escapes", `{"mimeType":"audio\/\u006dp3","data":"` + std + `"}`, "audio/mp3", Base64},
		{"parameters", `["DATA:text/plain;charset=utf-8;Base64,` + std + `"]`, "text/plain", Base64},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, threshold := range []int64{-1, 1 << 20, 300, 0} {
				_, refs, m := roundTrip(t, c.body, threshold)
				n := 0
				for _, r := range refs {
					if bytes.Equal(m[r.Sum], raw) {
						n++
						if r.MediaType != c.media || r.Encoding != c.encoding || r.Size != int64(len(raw)) {
							t.Errorf("threshold %d: %+v", threshold, r)
						}
					}
				}
				if n != 1 || threshold == -1 && len(refs) != 1 {
					t.Errorf("threshold %d: %d of %d references are to the data", threshold, n, len(refs))
				}
			}
		})
	}
}

// TestNotBinary: what only looks like binary data follows the rule for text.
func TestNotBinary(t *testing.T) {
	std := base64.StdEncoding.EncodeToString(noise(1000))
	for name, body := range map[string]string{
		"no sibling":         `{"data":"` + std + `"}`,
		"signature":          `{"type":"thinking","mime_type":"x","signature":"` + std + `"}`,
		"content":            `{"format":"text","content":"` + std + `"}`,
		"small":              `{"format":"wav","data":"` + std[:252] + `"}`,
		"small URI":          `{"url":"data:image/png;base64,` + std[:200] + `"}`,
		"line ends":          `{"format":"wav","data":"` + std[:400] + `\n` + std[400:] + `"}`,
		"line ends that fit": `{"format":"wav","data":"` + std[:400] + `\n\n\n\n` + std[400:] + `"}`,
		"small when read":    `{"format":"wav","data":"` + strings.Repeat(`a\/bc`, 60) + `"}`,
		"bits left over":     `{"format":"wav","data":"` + std[:len(std)-3] + `B=="}`,
		"two alphabets":      `{"format":"wav","data":"` + std[:400] + `-_+/` + std[400:] + `"}`,
		"bad length":         `{"format":"wav","data":"` + strings.Repeat("A", 301) + `"}`,
		"padding within":     `{"format":"wav","data":"` + std + std + `"}`,
		"percent":            `{"url":"data:image/svg+xml,` + strings.Repeat("%20", 200) + `"}`,
		"spelled too well":   `{"format":"wav","data":"\u0041` + std[1:] + `"}`,
		"far away":           `{"format":"png","a":{"b":{"bytes":"` + std + `"}}}`,
	} {
		if _, refs, _ := roundTrip(t, body, -1); len(refs) > 0 {
			t.Errorf("%s: moved as %+v", name, refs[0])
		}
		_, refs, _ := roundTrip(t, body, 200)
		for _, r := range refs {
			if r.Encoding != "" {
				t.Errorf("%s: moved as %+v", name, r)
			}
		}
	}
}
