package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A call that names a server waits for no other one, in any state of the others. In a bubble that is exact: each method takes as much
// virtual time beside the neighbours as alone, which is none for all but those that wait on purpose.

// neighbour is a server with everything to be named, and one bad habit.
type neighbour struct {
	silent  bool          // never answers
	lives   time.Duration // ends so long after it was dialled; 0: never
	slow    time.Duration // before each answer
	settles bool          // is slow only once its tools were listed
}

func (n neighbour) serve(ctx context.Context, peer inprocess.Peer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	if n.lives > 0 {
		end := time.AfterFunc(n.lives, cancel)
		defer end.Stop()
	}
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			return errors.New("it has died")
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(msg, &req) != nil || req.ID == nil || n.silent {
			continue
		}
		wait := n.slow
		if n.settles && slices.Contains([]string{"initialize", "tools/list", "server/discover"}, req.Method) {
			wait = 0
		}
		wg.Go(func() {
			select {
			case <-time.After(wait):
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, req.ID, named(req.Method)))
			case <-ctx.Done():
			}
		})
	}
}

// named is the answer to a request.
func named(method string) string {
	result := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true},"prompts":{},` +
			`"completions":{},"logging":{},"tasks":{"list":{},"cancel":{}}},"serverInfo":{"name":"n","version":"1"}}`,
		"ping": `{}`, "resources/subscribe": `{}`, "resources/unsubscribe": `{}`, "logging/setLevel": `{}`,
		"tools/list":               `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
		"tools/call":               `{"content":[{"type":"text","text":"ok"}]}`,
		"resources/list":           `{"resources":[{"uri":"x:///1","name":"one"}]}`,
		"resources/templates/list": `{"resourceTemplates":[]}`,
		"resources/read":           `{"contents":[{"uri":"x:///1","text":"one"}]}`,
		"prompts/list":             `{"prompts":[{"name":"greet"}]}`,
		"prompts/get":              `{"messages":[]}`,
		"completion/complete":      `{"completion":{"values":["a"]}}`,
		"tasks/list":               `{"tasks":[]}`,
	}[method]
	if result == "" {
		return `"error":{"code":-32601,"message":"there is no such method"}`
	}
	return `"result":` + result
}

// good is the server that is named. A neighbour whose name looks like it is slow: whose a name with a hash is, only the
// catalog and the lists of prompts know.
const good, twin = "go.od", "go od"

// neighbours are the others. Each goes on with its habit for longer than any test waits.
func neighbours() map[string]neighbour {
	const long = 1000 * time.Hour
	return map[string]neighbour{
		"silent": {silent: true}, "dying": {lives: time.Millisecond}, "flapping": {lives: 2 * time.Second},
		"slow": {slow: time.Hour}, "unapproved": {}, twin: {slow: long, settles: true},
	}
}

// among runs f with a manager of the good server, of a remote one that is not wanted, and of the neighbours.
func among(t *testing.T, others map[string]neighbour, f func(ctx context.Context, m *supervisor.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		cfg := supervisor.Config{
			Servers: map[string]supervisor.Spec{
				good:     {Type: messages.SDK},
				"remote": {URL: "http://127.0.0.1:1/mcp", Disabled: true, Auth: &messages.Auth{Type: messages.AuthOAuth}},
			},
			InProcess: map[string]func(context.Context, inprocess.Peer) error{good: neighbour{}.serve},
		}
		for name, n := range others {
			spec := supervisor.Spec{Type: messages.SDK, ConnectTimeout: messages.Duration(1000 * time.Hour)}
			if name == "unapproved" {
				spec.Hold = "it waits for an approval"
			}
			cfg.Servers[name], cfg.InProcess[name] = spec, n.serve
		}
		m, err := supervisor.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(t, m)
		f(t.Context(), m)
	})
}

type method func(ctx context.Context, m *supervisor.Manager) error

// byName is every method of the facade that takes the name of a server.
func byName() map[string]method {
	spec := supervisor.Spec{Type: messages.SDK, Name: good}
	nothing := func(context.Context, *supervisor.Manager) error { return nil }
	prompt := messages.Naming{}.Prompt(good, "greet")
	return map[string]method{
		"CallTool": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.CallTool(ctx, messages.Naming{}.Tool(good, "echo"), nil)
			return err
		},
		"CallServerTool": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.CallServerTool(ctx, good, "echo", nil)
			return err
		},
		"Connect": func(ctx context.Context, m *supervisor.Manager) error { return m.Connect(ctx, "new", spec) },
		"Disconnect": func(ctx context.Context, m *supervisor.Manager) error {
			return m.Disconnect(ctx, good)
		},
		"Toggle": func(ctx context.Context, m *supervisor.Manager) error {
			return errors.Join(m.Toggle(ctx, good, false), m.Toggle(ctx, good, true))
		},
		"Reconnect": func(ctx context.Context, m *supervisor.Manager) error { return m.Reconnect(ctx, good) },
		"Refresh":   func(ctx context.Context, m *supervisor.Manager) error { return m.Refresh(ctx, good) },
		"Remove": func(ctx context.Context, m *supervisor.Manager) error {
			return errors.Join(m.Connect(ctx, "new", spec), m.Remove(ctx, "new"))
		},
		"SetServers": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.SetServers(ctx, map[string]supervisor.Spec{"new": spec})
			return err
		},
		"Configure": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Configure(ctx, map[string]supervisor.Spec{good: spec})
			return err
		},
		"Settled": func(ctx context.Context, m *supervisor.Manager) error { return m.Settled(ctx, good) },
		"Ready":   func(ctx context.Context, m *supervisor.Manager) error { return m.Ready(ctx, good) },
		"Resources": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Resources(ctx, good)
			return err
		},
		"ResourceTemplates": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.ResourceTemplates(ctx, good)
			return err
		},
		"Prompts": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Prompts(ctx, good)
			return err
		},
		"ToolsOf": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.ToolsOf(ctx, good)
			return err
		},
		"AgentTools": func(ctx context.Context, m *supervisor.Manager) error {
			tools, err := m.AgentTools(ctx, good)
			if err == nil {
				_, err = tools[0].Handler()(ctx, nil)
			}
			return err
		},
		"AuthStatus": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.AuthStatus(ctx, "remote")
			return err
		},
		"Login": func(ctx context.Context, m *supervisor.Manager) error {
			return m.Login(ctx, "remote", supervisor.LoginOptions{})
		},
		"Logout": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Logout(ctx, "remote")
			return err
		},
		"Forget": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Forget(ctx, "remote")
			return err
		},
		"ProvideCredentials": func(ctx context.Context, m *supervisor.Manager) error {
			return m.ProvideCredentials(ctx, "remote", "token")
		},
		"Logs": func(_ context.Context, m *supervisor.Manager) error {
			m.Logs(good)
			return nil
		},
		"Ping": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Ping(ctx, good)
			return err
		},
		"History": func(_ context.Context, m *supervisor.Manager) error {
			_, err := m.History(good)
			return err
		},
		"ServerStatus": func(_ context.Context, m *supervisor.Manager) error {
			_, err := m.ServerStatus(good)
			return err
		},
		"Server": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Server(good).CallTool(ctx, "echo", nil)
			return err
		},
		"Decide": func(_ context.Context, m *supervisor.Manager) error {
			m.Decide(good, "echo", nil)
			return nil
		},
		"PinChanges": func(_ context.Context, m *supervisor.Manager) error {
			m.PinChanges(good)
			return nil
		},
		"ApprovePins": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.ApprovePins(ctx, good, nil)
			return err
		},
		"ReadServerResource": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.ReadServerResource(ctx, good, "x:///1")
			return err
		},
		"GetServerPrompt": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.GetServerPrompt(ctx, good, "greet", nil)
			return err
		},
		"GetPrompt": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.GetPrompt(ctx, prompt, nil)
			return err
		},
		"Complete": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Complete(ctx, good, messages.CompleteRequest{Prompt: "greet", Argument: "a"})
			return err
		},
		"SubscribeResource": func(ctx context.Context, m *supervisor.Manager) error {
			return m.SubscribeResource(ctx, good, "x:///1")
		},
		"UnsubscribeResource": func(ctx context.Context, m *supervisor.Manager) error {
			return errors.Join(m.SubscribeResource(ctx, good, "x:///1"), m.UnsubscribeResource(ctx, good, "x:///1"))
		},
		"Tasks": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Tasks(ctx, good)
			return err
		},
		"Task": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Task(ctx, good, "1")
			return err
		},
		"TaskResult": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.TaskResult(ctx, good, "1")
			return err
		},
		"CancelTask": func(ctx context.Context, m *supervisor.Manager) error { return m.CancelTask(ctx, good, "1") },
		"Instances": func(_ context.Context, m *supervisor.Manager) error {
			m.Instances(good)
			return nil
		},
		"InstanceOf": func(_ context.Context, m *supervisor.Manager) error {
			m.InstanceOf(good)
			return nil
		},
		"Capabilities": func(_ context.Context, m *supervisor.Manager) error {
			m.Capabilities(good)
			return nil
		},
		"EraOf": func(_ context.Context, m *supervisor.Manager) error {
			m.EraOf(good)
			return nil
		},
		"MayRead": func(_ context.Context, m *supervisor.Manager) error {
			m.MayRead(good)
			return nil
		},
		"RememberedTools": func(_ context.Context, m *supervisor.Manager) error {
			m.RememberedTools(good)
			return nil
		},
		"SetLogLevel": func(ctx context.Context, m *supervisor.Manager) error { return m.SetLogLevel(ctx, good, "info") },
		"PostLogLevel": func(ctx context.Context, m *supervisor.Manager) error {
			posted := 0
			if m.PostLogLevel(ctx, good, "info", func() { posted++ }); posted != 1 {
				return fmt.Errorf("posted was called %d times", posted)
			}
			return nil
		},
		"RefuseCall": func(ctx context.Context, m *supervisor.Manager) error {
			if err := m.RefuseCall(ctx, good, "echo", nil, access.Decision{Verdict: access.Deny}); !errors.Is(err, messages.ErrDenied) {
				return fmt.Errorf("it is not refused: %w", err)
			}
			return nil
		},
		"ReadLists": func(ctx context.Context, m *supervisor.Manager) error {
			return m.ReadLists(ctx, "prompts/list", good, func(context.Context, *session.Session) error { return nil })
		},
		"ReadOrRecall": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.ReadOrRecall(ctx, "prompts/list", good, func(context.Context, *session.Session) (supervisor.KeptList, error) { return nil, nil })
			return err
		},
		"Rests": func(_ context.Context, m *supervisor.Manager) error {
			m.Rests(good)
			return nil
		},
		"Forward": func(ctx context.Context, m *supervisor.Manager) error {
			_, err := m.Forward(ctx, good, "resources/read", "x:///1", json.RawMessage(`"uri":"x:///1"`))
			return err
		},
		// It is given a URI: every connected server is asked for its list.
		"ReadResource": nothing,
		// It is of the tests.
		"RunDirectly": nothing,
	}
}

// A method with a text among its parameters, or with a map of names, may name a server.
func TestEveryMethodThatTakesANameIsKnown(t *testing.T) {
	known := byName()
	for typ, i := reflect.TypeFor[*supervisor.Manager](), 0; i < typ.NumMethod(); i++ {
		f := typ.Method(i)
		for p := 1; p < f.Type.NumIn(); p++ {
			in := f.Type.In(p)
			if in.Kind() == reflect.Slice && f.Type.IsVariadic() && p == f.Type.NumIn()-1 {
				in = in.Elem()
			}
			names := in.Kind() == reflect.String || in.Kind() == reflect.Map && in.Key().Kind() == reflect.String
			if names && known[f.Name] == nil {
				t.Errorf("Manager.%s takes a name: try it beside the neighbours", f.Name)
			}
		}
	}
}

func TestWhoNamesAServerWaitsForNoOther(t *testing.T) {
	for name, f := range byName() {
		t.Run(name, func(t *testing.T) {
			for _, after := range []time.Duration{0, 1500 * time.Millisecond, 10 * time.Second, 20 * time.Minute} {
				run := func(others map[string]neighbour) (took time.Duration, err error) {
					among(t, others, func(ctx context.Context, m *supervisor.Manager) {
						if err := m.Settled(ctx, good); err != nil {
							t.Fatal(err)
						}
						time.Sleep(after)
						begin := time.Now()
						err = f(ctx, m)
						took = time.Since(begin)
					})
					return took, err
				}
				alone, lone := run(nil)
				beside, err := run(neighbours())
				if beside != alone {
					t.Errorf("after %v: %v alone, %v beside the others", after, alone, beside)
				}
				if (err == nil) != (lone == nil) {
					t.Errorf("after %v: %v alone, %v beside the others", after, lone, err)
				}
			}
		})
	}
}

// A name that no server has is said at once as well.
func TestSettledKnowsItsServers(t *testing.T) {
	among(t, neighbours(), func(ctx context.Context, m *supervisor.Manager) {
		begin := time.Now()
		if err := m.Settled(ctx, "nobody"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Error(err)
		}
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := m.Settled(wait, good, "silent"); err == nil || !strings.Contains(err.Error(), "silent") {
			t.Error(err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// Two callers that waited at the same time could wait for ever: each drew a number before it sent its question, the younger one
// overtook the older, and the server showed the older number from then on. A command that reads a resource while one server
// is silent asks so.
func TestManyWaitForTheSameServers(t *testing.T) {
	m := start(t, supervisor.Config{}, map[string]*fake{"one": {}, "two": {}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a wait without an end takes so long
	defer cancel()
	// After each pair there is no later question, which would free the one that hangs.
	for range 3000 {
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				if err := m.Settled(ctx, "one", "two"); err != nil {
					t.Error(err)
				}
			})
		}
		if callers.Wait(); t.Failed() {
			return
		}
	}
}
