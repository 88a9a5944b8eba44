package control_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// oddResult has blanks, an escape and a number that a decoder would write differently.
const oddResult = `{ "content":[ {"type":"text","text":"\u0041 <b> & \u202e"} ],  "structuredContent":{"n":1.0e2} }`

const oddContents = `{ "contents":[ {"uri":"a://b", "text":"\u0041 <b>"} ],  "messages":[], "n":1.0e2 }`

// serve is an MCP server with the tools odd, fails, refuses and waits. waits answers when its call is cancelled, and
// signals on started and stopped.
func serve(started, stopped chan<- struct{}) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, peer inprocess.Peer) error {
		var mu sync.Mutex
		waiting := map[string]json.RawMessage{}
		var called json.RawMessage
		for {
			raw, err := peer.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the connection ended
			}
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct {
					Name      string
					URI       string
					RequestID json.RawMessage `json:"requestId"`
					Meta      struct {
						Token json.RawMessage `json:"progressToken"`
						Trace string          `json:"example.com/trace"`
					} `json:"_meta"`
				}
				Result, Error json.RawMessage
			}
			if err := json.Unmarshal(raw, &m); err != nil {
				return err
			}
			answer := func(body string) {
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body))
			}
			switch m.Method {
			case "initialize":
				answer(`"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true},
					"prompts":{},"completions":{},"logging":{}},
					"serverInfo":{"name":"p","version":"1"}}`)
			case "tools/list":
				answer(`"result":{"tools":[{"name":"odd","inputSchema":{"type":"object"}},
					{"name":"fails","inputSchema":{"type":"object"}},{"name":"refuses","inputSchema":{"type":"object"}},
					{"name":"asks","inputSchema":{"type":"object"}},{"name":"steps","inputSchema":{"type":"object"}},
					{"name":"waits","inputSchema":{"type":"object"}}]}`)
			case "resources/list":
				answer(`"result":{"resources":[{"uri":"a://b","name":"b"}]}`)
			case "resources/templates/list":
				answer(`"result":{"resourceTemplates":[{"uriTemplate":"a://{x}","name":"x"}]}`)
			case "prompts/list":
				answer(`"result":{"prompts":[{"name":"q","arguments":[{"name":"x","required":true}]}]}`)
			case "resources/read":
				if m.Params.URI == "a://none" {
					answer(`"error":{"code":-32002,"message":"no such thing"}`)
					break
				}
				answer(`"result":` + oddContents)
			case "resources/subscribe":
				answer(`"result":{}`)
				_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}`))
			case "resources/unsubscribe":
				answer(`"result":{}`)
				stopped <- struct{}{}
			case "prompts/get":
				answer(`"result":` + oddContents)
			case "completion/complete":
				answer(`"result":{"completion":{"values":["y"],"total":2}}`)
			case "logging/setLevel":
				answer(`"result":{}`)
			case "ping":
				answer(`"result":{}`)
			case "":
				if string(m.ID) == `"asked"` { // the answer to a question ends the call that led to it
					_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}`,
						called, slices.Concat(m.Result, m.Error)))
				}
			case "tools/call":
				switch m.Params.Name {
				case "odd":
					answer(`"result":` + oddResult)
				case "fails":
					answer(`"result":{"content":[],"isError":true}`)
				case "refuses":
					answer(`"error":{"code":-32099,"message":"not today","data":{"a": 1}}`)
				case "asks":
					called = m.ID
					_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","id":"asked","method":"elicitation/create","params":{"message":"who?",
						"requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}`))
				case "steps":
					for i := 1; i <= 3; i++ {
						_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":
							{"progressToken":%s,"progress":%d,"total":3}}`, m.Params.Meta.Token, i))
						time.Sleep(20 * time.Millisecond) // what comes too fast may be dropped
					}
					answer(`"result":{"content":[{"type":"text","text":"` + m.Params.Meta.Trace + `"}]}`)
				case "waits":
					mu.Lock()
					waiting[string(m.ID)] = m.ID
					mu.Unlock()
					started <- struct{}{}
				}
			case "notifications/cancelled":
				mu.Lock()
				_, ok := waiting[string(m.Params.RequestID)]
				mu.Unlock()
				if ok {
					stopped <- struct{}{}
				}
			}
		}
	}
}

// testManager is a manager with one server p, and the location that the tests of one machine use.
type testManager struct {
	m                *supervisor.Manager
	location         control.Location
	started, stopped chan struct{}
	// questions receives the questions that no caller answers.
	questions chan messages.ElicitRequest
}

func newTestManager(t *testing.T) *testManager {
	t.Helper()
	s := &testManager{location: newLocation(t), started: make(chan struct{}, 8), stopped: make(chan struct{}, 8),
		questions: make(chan messages.ElicitRequest, 8)}
	peer := serve(s.started, s.stopped)
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		Servers: map[string]supervisor.Spec{
			"p":   {Type: messages.SDK, Era: messages.EraLegacy},
			"off": {Type: messages.SDK, Era: messages.EraLegacy, Disabled: true},
		},
		Elicit: func(_ context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
			s.questions <- r
			return messages.ElicitResult{Action: messages.ElicitDecline}, nil
		},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"p": peer, "off": peer},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.m = m
	return s
}

func (s *testManager) serve(t *testing.T) *control.Server {
	t.Helper()
	srv, err := control.Serve(s.location, control.Local(s.m, control.LocalConfig{
		Project: s.location.Project, Origin: "o",
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

func dial(t *testing.T, p control.Location) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// newLocation returns a location of its own. The directory is short, because t.TempDir may be longer than the path of
// a socket.
func newLocation(t *testing.T) control.Location {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	run := filepath.Join(dir, "r")
	return control.Location{
		Socket: filepath.Join(run, "s.sock"), Lock: filepath.Join(run, "s.lock"),
		Journal: filepath.Join(dir, "j", "j.jsonl"), Project: "/the/project",
	}
}

func unixOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes: the access rules of the profile directory count there")
	}
}

// socketClient returns a client of HTTP for a socket, for requests that no control.Client sends.
func socketClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}}}
}

// commandRequest returns the request of a command.
func commandRequest(m proto.Message) *http.Request {
	body, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
		fmt.Sprintf("http://x/v%d/%s", control.Protocol, m.ProtoReflect().Descriptor().Name()), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	return req
}

// readFrame reads one message of an answer: the length of its name, the name, the length of its bytes, and these.
func readFrame(r *bufio.Reader) (name string, body []byte, err error) {
	var parts [2][]byte
	for i := range parts {
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return "", nil, err
		}
		parts[i] = make([]byte, size)
		if _, err := io.ReadFull(r, parts[i]); err != nil {
			return "", nil, err
		}
	}
	return string(parts[0]), parts[1], nil
}
