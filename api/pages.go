package api

import (
	_ "embed"
	"io"
	"net/http"
)

//go:embed openapi.yaml
var contract string

func (x *Server) contract(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, err := io.WriteString(w, contract)
	return err
}

func (x *Server) docs(w http.ResponseWriter, _ *http.Request) error { return nil }

// page is the beginning of the page.
func (x *Server) page(w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	_, err := io.WriteString(w, `<!doctype html><html lang="en"><meta charset="utf-8"><title>ctxdir</title><h1>ctxdir</h1>`+
		`<p>This server has the <a href="/docs">API</a> of a store.</html>`+"\n")
	return err
}

// pagePolicy lets a page use what this server has, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
