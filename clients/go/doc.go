// Package client is a client of the API that "ctxtool serve" offers, for programs in Go that do not have the store on
// their machine. It is generated from openapi.yaml; this file adds what the generator does not know: the token, lists as
// JSON Lines, and following.
//
//	c, err := client.Dial("http://127.0.0.1:7433", token)
//	list, err := c.ListContextsWithResponse(ctx, nil)
//	for m, err := range c.Messages(ctx, id, "main", nil) { … }
//	for e, err := range c.Follow(ctx, id, after) { … }
//
// A program on the machine of the store uses package ctxdir instead: it needs no server.
package client

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config config.yaml ../../api/openapi.yaml
