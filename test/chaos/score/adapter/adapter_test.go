package adapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
)

// link is a connection that is lost when a test says so.
type link struct {
	mu     sync.Mutex
	lost   bool
	closed bool
}

func (l *link) Lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// client answers every call with its arguments.
type client struct {
	adapter.Redial[*link]
}

func (c *client) About() string                                          { return "test 1" }
func (c *client) Tools(_ context.Context, name string) ([]string, error) { return []string{name}, nil }
func (c *client) Call(ctx context.Context, name, tool string, args json.RawMessage) (json.RawMessage, error) {
	if _, err := c.Get(ctx, name); err != nil {
		return nil, err
	}
	switch tool {
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "panic":
		panic("on purpose")
	}
	return args, nil
}

func newClient() (*client, *[]*link) {
	var mu sync.Mutex
	links := &[]*link{}
	return &client{adapter.Redial[*link]{Dial: func(_ context.Context, s adapter.Server) (*link, error) {
		mu.Lock()
		defer mu.Unlock()
		if s.Command == "bad" {
			return nil, errors.New("refused")
		}
		l := &link{}
		*links = append(*links, l)
		return l, nil
	}}}, links
}

func TestCommandsAreAnswered(t *testing.T) {
	c, links := newClient()
	in, commands := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- adapter.Serve(in, out, c); out.Close() }()
	lines := bufio.NewScanner(answers)
	say := func(line string) string {
		t.Helper()
		if _, err := io.WriteString(commands, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatal("no answer")
		}
		return lines.Text()
	}
	for _, x := range []struct{ command, want string }{
		{`{"id":1,"do":"about"}`, `"about":"test 1"`},
		{`{"id":2,"do":"connect","name":"a","command":"x","args":["y"]}`, `"id":2,"ok":true`},
		{`{"id":3,"do":"connect","name":"b","command":"bad"}`, `"ok":false,"error":"refused"`},
		{`{"id":4,"do":"list","name":"a"}`, `"tools":["a"]`},
		{`{"id":5,"do":"call","name":"a","tool":"echo","args":{"text":"x"}}`, `"result":{"text":"x"}`},
		{`{"id":6,"do":"call","name":"a","tool":"hang","args":{},"timeoutMs":20}`, `"error":"context deadline exceeded"`},
		{`{"id":7,"do":"call","name":"a","tool":"panic","args":{}}`, `the client panicked: on purpose`},
		{`{"id":8,"do":"status"}`, `"status":{"a":"connected","b":"disconnected"}`},
		{`{"id":9,"do":"dance"}`, `unknown command`},
		{`no json`, `no command`},
		{`{"id":10,"do":"close","name":"a"}`, `"id":10,"ok":true`},
		{`{"id":11,"do":"quit"}`, `"id":11,"ok":true`},
	} {
		if got := say(x.command); !strings.Contains(got, x.want) {
			t.Errorf("%s is answered with %s, want %s", x.command, got, x.want)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !(*links)[0].closed {
		t.Error("the connection was not closed")
	}
}

func TestTheEndOfInputIsTheEnd(t *testing.T) {
	c, links := newClient()
	if err := c.Connect(t.Context(), "a", adapter.Server{}); err != nil {
		t.Fatal(err)
	}
	if err := adapter.Serve(strings.NewReader(""), io.Discard, c); err != nil {
		t.Error(err)
	}
	if !(*links)[0].closed {
		t.Error("the connection was not closed")
	}
}

func TestALostLinkIsDialledAnewOnce(t *testing.T) {
	c, links := newClient()
	if err := c.Connect(t.Context(), "a", adapter.Server{}); err != nil {
		t.Fatal(err)
	}
	first := (*links)[0]
	first.mu.Lock()
	first.lost = true
	first.mu.Unlock()
	if got := c.Status(t.Context())["a"]; got != "disconnected" {
		t.Errorf("status %q", got)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := c.Get(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(*links) != 2 || !first.closed {
		t.Errorf("%d dials, the lost one closed: %t", len(*links), first.closed)
	}
	if _, err := c.Get(t.Context(), "b"); err == nil {
		t.Error("a server that nobody connected has a link")
	}
}

func TestACommandReadsAsItWasWritten(t *testing.T) {
	for _, c := range []adapter.Command{
		{ID: 1, Do: "connect", Name: "a", Command: "x", Args: []string{"y", "z"}},
		{ID: 2, Do: "call", Name: "a", Tool: "t", ToolArgs: json.RawMessage(`{"n":1}`)},
	} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var second adapter.Command
		if err := json.Unmarshal(b, &second); err != nil || fmt.Sprint(second) != fmt.Sprint(c) {
			t.Errorf("%s became %v, %v", b, second, err)
		}
	}
}

func ExampleServe() {
	c, _ := newClient()
	_ = adapter.Serve(strings.NewReader(`{"id":1,"do":"quit"}`+"\n"), io.Discard, c)
	fmt.Println("ended")
	// Output: ended
}
