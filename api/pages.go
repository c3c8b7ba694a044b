package api

import (
	_ "embed"
	"io"
	"net/http"
)

//go:embed openapi.yaml
var contract string

// docsPage is made from the contract, by a test of package client.
//
//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle string

func (x *Server) contract(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, err := io.WriteString(w, contract)
	return err
}

func (x *Server) docs(w http.ResponseWriter, _ *http.Request) error {
	return sendPage(w, "text/html; charset=utf-8", docsPage)
}

func (x *Server) docsCSS(w http.ResponseWriter, _ *http.Request) error {
	return sendPage(w, "text/css; charset=utf-8", docsStyle)
}

// sendPage sends a part of a page.
func sendPage(w http.ResponseWriter, media, text string) error {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Security-Policy", pagePolicy)
	_, err := io.WriteString(w, text)
	return err
}

// page is the beginning of the page.
func (x *Server) page(w http.ResponseWriter, r *http.Request) error {
	if x.front != nil {
		x.front(w, r)
		return nil
	}
	return sendPage(w, "text/html; charset=utf-8", `<!doctype html><html lang="en"><meta charset="utf-8"><title>ctxdir</title>`+
		`<h1>ctxdir</h1>`+
		`<p>This server has the <a href="/docs">API</a> of a store.</html>`+"\n")
}

// pagePolicy lets a page use what this server has, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " +
	"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types dompurify worker"
