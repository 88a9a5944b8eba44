package supervisor_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestANilContextIsRefused gives a nil context to every exported method that takes one. Each returns an error that is ErrInvalid, has sent
// nothing, and leaves nothing locked: the same methods work afterwards, and so does the manager's end. A method of one server names it.
func TestANilContextIsRefused(t *testing.T) {
	s := supervisortest.NewServer("s", supervisortest.Echo("x"))
	m := supervisortest.Start(t, s)
	// The files that it follows would replace the servers of m.
	follower, err := supervisor.Follow(t.Context(), supervisortest.Start(t), supervisor.FollowOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	// The first two read what is known already; Admit is of these tests, and Reload that of the follower below.
	without := map[string]bool{"ToolsOf": true, "AgentTools": true, "Admit": true, "Reload": true}
	for _, owner := range []any{m, m.Server("s"), follower} {
		v := reflect.ValueOf(owner)
		_, ofServer := owner.(*supervisor.Server)
		for i := range v.NumMethod() {
			name, method := v.Type().Method(i).Name, v.Method(i)
			if method.Type().NumIn() == 0 || method.Type().In(0) != reflect.TypeFor[context.Context]() {
				continue
			}
			err, hasError := callWithNil(method)
			switch {
			case !hasError || without[name]:
			case !errors.Is(err, supervisor.ErrInvalid):
				t.Errorf("%T.%s: %v", owner, name, err)
			case ofServer:
				if e := new(supervisor.Error); !errors.As(err, &e) || e.Server != "s" {
					t.Errorf("%T.%s does not name its server: %v", owner, name, err)
				}
			}
		}
	}
	if m, err := supervisor.Start(nil, supervisor.Config{}); !errors.Is(err, supervisor.ErrInvalid) || m != nil { //nolint:staticcheck // it is the subject
		t.Errorf("Start: %v", err)
	}
	if err := supervisor.Serve(nil, supervisor.Config{}, nil); !errors.Is(err, supervisor.ErrInvalid) { //nolint:staticcheck // it is the subject
		t.Errorf("Serve: %v", err)
	}
	if f, err := supervisor.Follow(nil, m, supervisor.FollowOptions{}); !errors.Is(err, supervisor.ErrInvalid) || f != nil { //nolint:staticcheck // it is the subject
		t.Errorf("Follow: %v", err)
	}
	if out, err := m.CallTool(t.Context(), "mcp__s__x", nil); err != nil || len(s.Calls()) != 1 {
		t.Errorf("the next call: %v, %v; the server ran %d", out, err, len(s.Calls()))
	}
}

// callWithNil calls a method with a nil context and zero values, but for names, which are those of the server and its tool.
func callWithNil(method reflect.Value) (err error, hasError bool) {
	in := []reflect.Value{reflect.Zero(reflect.TypeFor[context.Context]())}
	for i, names := 1, []string{"s", "x"}; i < method.Type().NumIn() && !(method.Type().IsVariadic() && i == method.Type().NumIn()-1); i++ {
		arg := reflect.New(method.Type().In(i)).Elem()
		switch {
		case arg.Kind() == reflect.String && len(names) > 0:
			arg.SetString(names[0])
			names = names[1:]
		case arg.Kind() == reflect.Func:
			arg = reflect.MakeFunc(arg.Type(), func([]reflect.Value) []reflect.Value {
				out := make([]reflect.Value, arg.Type().NumOut())
				for k := range out {
					out[k] = reflect.Zero(arg.Type().Out(k))
				}
				return out
			})
		}
		in = append(in, arg)
	}
	out := method.Call(in)
	if len(out) == 0 || out[len(out)-1].Type() != reflect.TypeFor[error]() {
		return nil, false
	}
	err, _ = out[len(out)-1].Interface().(error)
	return err, true
}
