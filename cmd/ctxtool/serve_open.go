package main

import (
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"

	"github.com/cli/browser"
)

// openPage opens an address in a browser. The arguments of a process are there for all users of the machine to see, and
// the address has the token: so the browser is given a file that only its user can read, which leads to the address.
// forget removes the file.
func (a *app) openPage(dir, address string) (forget func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "open-*.html") // with mode 0600
	if err != nil {
		return nil, err
	}
	forget = func() { _ = os.Remove(f.Name()) }
	address = html.EscapeString(address)
	_, err = fmt.Fprintf(f, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">`+
		`<meta http-equiv="refresh" content="0;url=%s"><title>ctxdir</title><a href="%s">Open the page</a></html>`+"\n", address, address)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		forget()
		return nil, err
	}
	path, err := filepath.Abs(f.Name())
	if err != nil {
		forget()
		return nil, err
	}
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	go func() { // some browsers stay
		if err := browser.OpenFile(path); err != nil {
			a.note("failed to open a browser: %v; open the address yourself", err)
		}
	}()
	return forget, nil
}
