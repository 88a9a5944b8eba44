package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// An interceptor measures every tool call and every read, and gives each the trace context of the program.
func ExampleInterceptor() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	measure := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		r.Meta = json.RawMessage(`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`)
		began := time.Now()
		res, err := next(ctx, r)
		fmt.Println(r.Method, r.Name, "at", res.Server, "in less than a minute:", time.Since(began) < time.Minute, err)
		return res, err
	}
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess:    inProcess(),
		Servers:      map[string]supervisor.Spec{"hi": {Type: supervisor.SDK, Name: "greeter"}},
		Interceptors: []supervisor.Interceptor{measure},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Settled(ctx, "hi")
	res, err := m.CallTool(ctx, "mcp__hi__greet", map[string]any{"name": "Ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text())
	// Output:
	// tools/call mcp__hi__greet at hi in less than a minute: true <nil>
	// hello, Ada
}
