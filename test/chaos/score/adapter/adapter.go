// Package adapter is the protocol by which "mcpvisor chaos score" drives an MCP client: a program that reads commands and
// writes answers, one JSON object per line, on its standard input and output. It can be written in any language.
//
//	→ {"id":1,"do":"connect","name":"a","command":"/bin/server","args":["x"],"timeoutMs":5000}
//	← {"id":1,"ok":true,"tookMs":120}
//	→ {"id":2,"do":"connect","name":"b","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t"},"timeoutMs":5000}
//	← {"id":2,"ok":false,"error":"refused","tookMs":3}
//	→ {"id":3,"do":"list","name":"a","timeoutMs":5000}
//	← {"id":3,"ok":true,"tools":["echo","write"],"tookMs":2}
//	→ {"id":4,"do":"call","name":"a","tool":"echo","args":{"text":"x"},"timeoutMs":2000}
//	← {"id":4,"ok":true,"result":{"content":[{"type":"text","text":"x"}]},"tookMs":1}
//	→ {"id":5,"do":"status"}
//	← {"id":5,"ok":true,"status":{"a":"connected","b":"failed"}}
//	→ {"id":6,"do":"close","name":"a"}
//	→ {"id":7,"do":"about"}
//	← {"id":7,"ok":true,"about":"some-client 1.2; keep-alive every 2s"}
//	→ {"id":8,"do":"quit"}
//
// Meaning of the commands:
//
//   - connect: the client connects to a server and waits until that has succeeded or failed, for at most timeoutMs. What it
//     does afterwards by itself, or at the next command about that server, is up to the client: the score judges that.
//   - list: the names of the tools that the client would offer now.
//   - call: the client calls a tool by the name that the server gave it, and gives up after timeoutMs in its usual way. ok is
//     false if there is no result, also if the outcome is only unknown; a result with isError is a result.
//   - status: one word for each server as the client sees it; only "connected" has a fixed meaning.
//   - close: the client disconnects from one server, and answers when that is done. quit: it disconnects from all servers,
//     answers, and exits.
//
// Commands arrive while others are under way, and answers may come in any order. The end of standard input means quit. Standard
// error is for people to read. [Serve] does all of this for a Go program, and [Redial] reconnects for a library that does not.
package adapter

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Command is one line to the adapter.
type Command struct {
	ID   int    `json:"id"`
	Do   string `json:"do"`
	Name string `json:"name,omitempty"`
	// Command and Args start a server; URL and Headers reach one over HTTP.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Tool and ToolArgs are the call. TimeoutMs is in milliseconds; 0 sets no limit. ToolArgs travels as "args", see
	// MarshalJSON.
	Tool      string          `json:"tool,omitempty"`
	TimeoutMs int             `json:"timeoutMs,omitempty"`
	ToolArgs  json.RawMessage `json:"-"`
}

// Answer is one line from the adapter. ID is that of the command; TookMs is the adapter's own measurement, in milliseconds.
type Answer struct {
	ID     int               `json:"id"`
	OK     bool              `json:"ok"`
	Error  string            `json:"error,omitempty"`
	Tools  []string          `json:"tools,omitempty"`
	Result json.RawMessage   `json:"result,omitempty"`
	Status map[string]string `json:"status,omitempty"`
	About  string            `json:"about,omitempty"`
	TookMs int64             `json:"tookMs"`
}

// Server describes how to reach a server: by a command, or by a URL.
type Server struct {
	Command string
	Args    []string
	URL     string
	Headers map[string]string
}

// Client is the client under test, as an adapter implements it. Serve calls its methods concurrently. Every ctx ends with the
// time that the command allows.
type Client interface {
	// About returns the client's name and version, and the options that are set.
	About() string
	Connect(ctx context.Context, name string, s Server) error
	Tools(ctx context.Context, name string) ([]string, error)
	Call(ctx context.Context, name, tool string, args json.RawMessage) (json.RawMessage, error)
	Status(ctx context.Context) map[string]string
	Close(ctx context.Context, name string) error
	// Quit disconnects from all servers.
	Quit(ctx context.Context)
}

// MarshalJSON writes the arguments of a tool as "args", which is an object for a call and a list for connect.
func (c Command) MarshalJSON() ([]byte, error) {
	type plain Command
	if c.ToolArgs == nil {
		return json.Marshal(plain(c))
	}
	return json.Marshal(struct {
		plain
		Args json.RawMessage `json:"args"`
	}{plain(c), c.ToolArgs})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Command) UnmarshalJSON(b []byte) error {
	type plain Command
	both := struct {
		*plain
		Args json.RawMessage `json:"args"`
	}{plain: (*plain)(c)}
	if err := json.Unmarshal(b, &both); err != nil {
		return err
	}
	if c.Do == "call" || len(both.Args) == 0 {
		c.ToolArgs = both.Args
		return nil
	}
	return json.Unmarshal(both.Args, &c.Args)
}

// Serve answers commands until quit or the end of in. It returns nil for both, and the error of reading otherwise. Each command
// runs in its own goroutine.
func Serve(in io.Reader, out io.Writer, client Client) error {
	var mu sync.Mutex
	say := func(a Answer) {
		b, err := json.Marshal(a)
		// The client returned a result that is no JSON.
		if err != nil {
			b, _ = json.Marshal(Answer{ID: a.ID, Error: err.Error(), TookMs: a.TookMs})
		}
		mu.Lock()
		defer mu.Unlock()
		// If the reader has gone, the end of in follows.
		_, _ = out.Write(append(b, '\n'))
	}
	quit := func() {
		ctx, cancel := context.WithTimeout(context.Background(), quitTime)
		defer cancel()
		client.Quit(ctx)
	}
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			quit()
			if err == io.EOF {
				return nil
			}
			return err
		}
		var c Command
		if err := json.Unmarshal(line, &c); err != nil {
			say(Answer{Error: "no command: " + err.Error()})
			continue
		}
		if c.Do == "quit" {
			began := time.Now()
			quit()
			say(Answer{ID: c.ID, OK: true, TookMs: time.Since(began).Milliseconds()})
			return nil
		}
		// The goroutine ends with its command, or with the program.
		go func() {
			say(performCommand(client, c))
		}()
	}
}

// quitTime bounds the time that a client has to disconnect from all servers.
const quitTime = 30 * time.Second

// performCommand performs one command. A panic of the client becomes an error like any other.
func performCommand(client Client, c Command) (a Answer) {
	ctx, cancel := context.WithCancel(context.Background())
	if c.TimeoutMs > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.TimeoutMs)*time.Millisecond)
	}
	defer cancel()
	began := time.Now()
	var err error
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the client panicked: %v", v)
		}
		a.ID, a.OK, a.TookMs = c.ID, err == nil, time.Since(began).Milliseconds()
		if err != nil {
			a.Error = err.Error()
		}
	}()
	switch c.Do {
	case "about":
		a.About = client.About()
	case "connect":
		err = client.Connect(ctx, c.Name, Server{c.Command, c.Args, c.URL, c.Headers})
	case "list":
		a.Tools, err = client.Tools(ctx, c.Name)
	case "call":
		a.Result, err = client.Call(ctx, c.Name, c.Tool, c.ToolArgs)
	case "status":
		a.Status = client.Status(ctx)
	case "close":
		err = client.Close(ctx, c.Name)
	default:
		err = fmt.Errorf("unknown command %q", c.Do)
	}
	return a
}
