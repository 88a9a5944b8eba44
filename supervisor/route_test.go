package supervisor_test

import (
	"context"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/transports"
)

// TestACallTakesTheRouteOfTheDocs: the functions that a call is in when its bytes are handed to the connection stand in the files
// that the package comment names for it, and in all of them but those of the transport and of the answer.
func TestACallTakesTheRouteOfTheDocs(t *testing.T) {
	doc, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, stop := range arch.Routes(doc.Doc.Text())[0] {
		if strings.HasPrefix(stop.File, "transports/stdio/") {
			break
		}
		want = append(want, stop.File)
	}
	synctest.Test(t, func(t *testing.T) {
		files := &stackFiles{}
		m := start(t, supervisor.Config{Wrap: func(_ string, _ supervisor.Spec, inner transports.Transport) transports.Transport {
			return stackTransport{inner, files}
		}}, map[string]*fake{"a": newFake("t")})
		settled(t, m)
		if _, err := m.CallTool(t.Context(), "mcp__a__t", nil); err != nil {
			t.Fatal(err)
		}
		files.mu.Lock()
		defer files.mu.Unlock()
		slices.Reverse(files.names)
		if !slices.Equal(files.names, want) {
			t.Errorf("a call is in\n%q; the package comment names\n%q", files.names, want)
		}
	})
}

// stackFiles notes the files of this module that are on the stack of a tool call when it is sent, each once, the innermost first.
type stackFiles struct {
	mu    sync.Mutex
	names []string
}

// stackTransport gives its connections away with a Send that notes the stack.
type stackTransport struct {
	transports.Transport
	files *stackFiles
}

func (s stackTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	conn, err := s.Transport.Dial(ctx, sink)
	return stackConn{conn, s.files}, err
}

type stackConn struct {
	transports.Conn
	files *stackFiles
}

func (c stackConn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if m.Method == "tools/call" {
		_, self, _, _ := runtime.Caller(0)
		top := filepath.Dir(filepath.Dir(self))
		pcs := make([]uintptr, 64)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
		c.files.mu.Lock()
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if name, err := filepath.Rel(top, f.File); err == nil && filepath.IsLocal(name) && !strings.HasSuffix(name, "_test.go") &&
				!slices.Contains(c.files.names, filepath.ToSlash(name)) {
				c.files.names = append(c.files.names, filepath.ToSlash(name))
			}
		}
		c.files.mu.Unlock()
	}
	return c.Conn.Send(ctx, m)
}
