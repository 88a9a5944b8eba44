package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A bridge sends nothing more after its word, so that nothing of what follows is read, however often it is tried. In the middle of a line, and as
// a part of another one, the word is none.
func TestNothingIsReadBehindTheWordOfABridge(t *testing.T) {
	long := `{"x":"` + strings.Repeat("y", 10_000) + `"}`
	for sent, want := range map[string]string{
		"":            "",
		"{\"a\":1}\n": "{\"a\":1}\n",
		"{\"a\":1}\n" + client.DrainedLine + "\n":              "{\"a\":1}\n",
		client.DrainedLine + "\n{\"a\":1}\n":                   "",
		client.DrainedLine + "\n" + client.DrainedLine + "\nx": "",
		long + "\n" + client.DrainedLine + "\n{}\n":            long + "\n",
		long + client.DrainedLine + "\n{}\n":                   long + client.DrainedLine + "\n{}\n",
		`{"mcpvisor":"other"}` + "\n{}\n":                      `{"mcpvisor":"other"}` + "\n{}\n",
		"no end":                                               "no end",
	} {
		d := &drainReader{r: bufio.NewReaderSize(strings.NewReader(sent), 64), gone: func() {}}
		got, err := io.ReadAll(d)
		if string(got) != want || err != nil {
			t.Errorf("%.60q: %.60q, %v", sent, got, err)
		}
		if n, err := d.Read(make([]byte, 10)); n != 0 || err != io.EOF {
			t.Errorf("%.60q: after the end come %d bytes, %v", sent, n, err)
		}
	}
}

// A call of an agent that was killed ran on at its server, up to its timeout.
func TestWhatRunsIsCancelledWhenTheBridgeGoes(t *testing.T) {
	for name, goes := range map[string]func(agent net.Conn){
		"killed": func(agent net.Conn) { _ = agent.Close() },
		"after its word": func(agent net.Conn) {
			fmt.Fprintln(agent, client.DrainedLine)
			time.Sleep(time.Second)
			_ = agent.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, conn := net.Pipe()
				begun := make(chan bool)
				ended := make(chan bool)
				go func() {
					defer close(ended)
					serveAgent(t.Context(), serve.Options{Service: waiting{begun: begun}}, "", bufio.NewReader(conn), &bridgeConn{Conn: conn})
				}()
				fmt.Fprintln(agent, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{`+
					`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},`+
					`"io.modelcontextprotocol/clientCapabilities":{}}}}`)
				<-begun
				goes(agent)
				select {
				case <-ended:
				case <-time.After(time.Minute):
					_ = conn.Close()
					t.Error("the call runs on")
				}
			})
		})
	}
}

// An agent that has said its last word gets the answers.
func TestWhatRunsIsAnsweredAfterTheWordOfTheBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, conn := net.Pipe()
		go func() {
			defer conn.Close()
			serveAgent(t.Context(), serve.Options{Service: waiting{takes: time.Hour}}, "", bufio.NewReader(conn), &bridgeConn{Conn: conn})
		}()
		go func() {
			fmt.Fprintln(agent, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},`+
				`"io.modelcontextprotocol/clientCapabilities":{}}}}`)
			fmt.Fprintln(agent, client.DrainedLine)
		}()
		if all, err := io.ReadAll(agent); !strings.Contains(string(all), `"late"`) || err != nil {
			t.Errorf("%s, %v", all, err)
		}
	})
}

// An agent that is served no more leaves nothing that waits for its bridge, although the connection is still open. In a bubble a goroutine that is
// left fails the test.
func TestNothingWaitsForTheBridgeOfAnAgentThatIsServedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, conn := net.Pipe()
		go fmt.Fprintln(agent, client.DrainedLine)
		serveAgent(t.Context(), serve.Options{Service: waiting{}}, "", bufio.NewReader(conn), &bridgeConn{Conn: conn})
	})
}

// brokenReader panics when its text has been read.
type brokenReader struct{ text *strings.Reader }

func (b brokenReader) Read(p []byte) (int, error) {
	if b.text.Len() == 0 {
		panic("a defect")
	}
	return b.text.Read(p)
}

// A defect while the daemon waits for a bridge to go costs that bridge its agent, and not the daemon with all agents.
func TestADefectBehindTheWordOfABridgeIsItsEnd(t *testing.T) {
	gone := make(chan struct{})
	d := &drainReader{r: bufio.NewReader(brokenReader{strings.NewReader(client.DrainedLine + "\n")}), gone: func() { close(gone) }}
	if all, err := io.ReadAll(d); len(all) > 0 || err != nil {
		t.Errorf("%s, %v", all, err)
	}
	<-gone
	d.watching.Wait()
}

// waiting is a service whose calls last until they are cancelled, or, with takes, as long as that.
type waiting struct {
	serve.Service
	begun chan<- bool
	takes time.Duration
}

func (w waiting) Handle(ctx context.Context, _ *serve.Request) ([]byte, *serve.Error) {
	if w.begun != nil {
		w.begun <- true
	}
	if w.takes > 0 {
		time.Sleep(w.takes)
		return []byte(`{"late":true}`), nil
	}
	<-ctx.Done()
	return nil, &serve.Error{Code: -32603, Message: "cancelled"}
}
