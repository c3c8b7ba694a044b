package server_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/ctxdir/ctxdir/exchange"
	"github.com/ctxdir/ctxdir/server"
)

// TestExchangeDocs plays the example of docs/EXCHANGE.md: it sends the lines of the agent, and compares those of the server.
func TestExchangeDocs(t *testing.T) { each(t, testExchangeDocs) }

func testExchangeDocs(t *testing.T, at backend) {
	text, err := os.ReadFile("../docs/EXCHANGE.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```exchange\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("there is no example")
	}
	s := newScript(t)
	s.answer = func(_ string, say func(string)) { say("Berths 3 and 4.") }
	k := newKit(t, at, server.Options{Model: s.model()})
	conn, _, err := websocket.Dial(t.Context(), k.url+exchange.Path, &websocket.DialOptions{ //nolint:bodyclose // the connection has it
		Subprotocols: []string{exchange.Subprotocol, "ctxdir.token." + k.tokens["ada"]},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	played := 0
	for line := range strings.Lines(string(block[1])) {
		who, message, _ := strings.Cut(strings.TrimSpace(line), " ")
		message = strings.TrimSpace(message)
		played++
		if who == "agent" {
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		_, got, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(message), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("the server sends\n%s\nwanted\n%s", got, message)
		}
	}
	if played < 10 || s.count() != 1 {
		t.Errorf("%d messages, %d calls of the model", played, s.count())
	}
}
