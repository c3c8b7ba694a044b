// Command site makes the documentation a small site of static pages: from README.md, the Markdown in docs/ and a few
// other files. It needs no server and asks for nothing outside of its folder, so it works from a disk and below any address.
//
//	cd docs/site && go run . -out DIR
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("site: ")
	root := flag.String("root", "../..", "the checkout")
	out := flag.String("out", "", "the folder for the pages")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		log.Fatal("use: go run . -out DIR")
	}
	s, err := newSite(*root, groups)
	if err == nil {
		err = s.write(*out)
	}
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out+"/.nojekyll", nil, 0o644); err != nil { // hosts must not leave files out
		log.Fatal(err)
	}
	log.Printf("%d pages in %s", len(s.pages), *out)
}
