//go:build unix

package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

const roleVariable = "PROXY_TEST_ROLE"

// TestMain makes this binary the servers of the tests.
func TestMain(m *testing.M) {
	switch role, arg, _ := strings.Cut(os.Getenv(roleVariable), ":"); role {
	case "":
		os.Exit(m.Run())
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "server":
		serveStdio(os.Stdin, os.Stdout)
	case "sdk":
		_ = sdkServer().Run(context.Background(), &mcp.StdioTransport{})
	case "mcpgo":
		_ = mcpgoserver.ServeStdio(mcpgoServer())
	case "exit":
		var code int
		_, _ = fmt.Sscan(arg, &code)
		fmt.Println("last words, without")
		os.Stdout.WriteString("an end")
		os.Exit(code)
	case "signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stubborn": // it ends on SIGTERM only, and says so
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		fmt.Println("asked")
		os.Exit(9)
	case "parent": // its child holds the output, and outlives it
		child := &os.ProcAttr{Env: []string{roleVariable + "=sleeper"}, Files: []*os.File{nil, os.Stdout, nil}}
		p, err := os.StartProcess(os.Args[0], os.Args[:1], child)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.Pid)
	case "sleeper":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
	}
}

// serveStdio is a small MCP server: it answers every request, tools/call with its arguments.
func serveStdio(in io.Reader, out io.Writer) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(line, &m) == nil && m.ID != nil {
			result := `{}`
			switch m.Method {
			case "tools/list":
				result = `{"tools":[{"name":"echo"},{"name":"add"}]}`
			case "tools/call":
				result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, m.Params.Name)
			}
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
		if err != nil {
			return
		}
	}
}

// newStdioProxy makes a proxy in front of a role.
func newStdioProxy(t testing.TB, role string, rules ...string) *proxy.Stdio {
	t.Helper()
	control, err := fault.New(1)
	if err != nil {
		t.Fatal(err)
	}
	control = control.At(fault.Stdio)
	for _, text := range rules {
		r, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := control.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	s := &proxy.Stdio{Command: os.Args[0], Env: append(os.Environ(), roleVariable+"="+role), Grace: time.Second}
	s.Control, s.Tally = control, &proxy.Tally{}
	control.Watch(s.Tally.Hit)
	return s
}

// runProxy runs a proxy with an input to its end.
func runProxy(t testing.TB, s *proxy.Stdio, input io.Reader) (string, proxy.Exit) {
	t.Helper()
	var out safeBuffer
	s.In, s.Out = input, &out
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	exit, err := s.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("it did not end within %v", bound)
	}
	return out.String(), exit
}
