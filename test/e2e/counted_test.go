package e2e_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stream"
)

// The programs that are counted: their statements, without checks of errors. Each of them runs.

// countedFirstAnswer goes from nothing to the first answer of a server over stdio.
func countedFirstAnswer(ctx context.Context, command string, args []string) (string, error) {
	m, err := supervisor.Start(ctx, supervisor.Config{CallWait: time.Minute,
		Servers: map[string]supervisor.Spec{"files": {Command: command, Args: args}}})
	if err != nil {
		return "", err
	}
	defer m.Close(ctx)
	out, err := m.CallTool(ctx, "mcp__files__echo", map[string]any{"text": "hello"})
	return out.Text(), err
}

// countedFake has a fake server under a manager in a test.
func countedFake(t *testing.T) *supervisor.Manager {
	return supervisortest.Start(t, supervisortest.NewServer("files", supervisortest.Text("read", "hello")))
}

// countedChild makes the manager the child of an actor.
func countedChild(ctx actor.Context, cfg supervisor.Config) {
	ctx.Spawn(supervisor.Props(cfg, nil))
}

// countedStream reaches a server behind a stream of lines.
func countedStream(open func(ctx context.Context) (io.ReadWriteCloser, error)) transports.Transport {
	return stream.New(open)
}

// TestProgramsAreShort counts the statements of the programs above.
func TestProgramsAreShort(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "counted_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	most := map[string]int{"countedFirstAnswer": 4, "countedFake": 1, "countedChild": 1, "countedStream": 1}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || most[f.Name.Name] == 0 {
			continue
		}
		n := 0
		for _, statement := range f.Body.List {
			if _, check := statement.(*ast.IfStmt); !check {
				n++
			}
		}
		t.Logf("%s: %d", f.Name.Name, n)
		if n > most[f.Name.Name] {
			t.Errorf("%s: %d statements, more than %d", f.Name.Name, n, most[f.Name.Name])
		}
		delete(most, f.Name.Name)
	}
	if len(most) > 0 {
		t.Errorf("not found: %v", most)
	}
}

// TestCountedProgramsWork runs them.
func TestCountedProgramsWork(t *testing.T) {
	checkLeaks(t)
	command, args := servers.Command("good")
	if text, err := countedFirstAnswer(t.Context(), command, args); err != nil || text == "" {
		t.Errorf("the first answer: %q, %v", text, err)
	}
	if out, err := countedFake(t).CallTool(t.Context(), "mcp__files__read", nil); err != nil || out.Text() != "hello" {
		t.Errorf("a fake: %v, %v", out, err)
	}
	here, there := net.Pipe()
	conn, err := countedStream(func(context.Context) (io.ReadWriteCloser, error) { return here, nil }).Dial(t.Context(), discard{})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	_ = there.Close()
	// countedChild is run by ExampleProps of package supervisor.
	_ = countedChild
}

// discard is a sink that keeps nothing.
type discard struct{}

func (discard) Message([]byte)                 {}
func (discard) Oversized(_, _ []byte, _ int64) {}
func (discard) Noise([]byte)                   {}
func (discard) Down(error)                     {}
