package core

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// A manager that closes answers each command, and does none.
func TestAManagerThatClosesRefusesCommands(t *testing.T) {
	s, a, sent := directed(t)
	s.closing = &CloseAll{}
	replies := make(chan error, 10)
	reply := func(err error) { replies <- err }
	commands := map[string]func(){
		"add":       func() { s.handleAdd(nil, AddServer{Name: "b", Spec: messages.Spec{Command: "b"}, Reply: reply}) },
		"remove":    func() { s.handleRemove(nil, RemoveServer{Name: "a", Reply: reply}) },
		"enable":    func() { s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Enable{}, Reply: reply}) },
		"disable":   func() { s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Disable{}, Reply: reply}) },
		"reconnect": func() { s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Reconnect{}, Reply: reply}) },
		"nobody":    func() { s.handleCommand(nil, ServerCommand{Name: "nobody", Event: lifecycle.Enable{}, Reply: reply}) },
		"set": func() {
			s.handleSetServers(nil, SetServers{Specs: map[string]messages.Spec{"b": {Command: "b"}}, Reply: func(_ messages.SetServersResult, err error) { reply(err) }})
		},
	}
	for what, give := range commands {
		if give(); len(replies) != 1 {
			t.Fatalf("%s has %d answers", what, len(replies))
		}
		if err := <-replies; !errors.Is(err, messages.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(s.servers) != 1 || !a.wanted || a.removing || len(sent) != 0 {
		t.Errorf("a command was done: %+v", a)
	}
}

// What cannot be done is refused with what to do, and nothing is changed.
func TestCommandsThatCannotBeDoneAreRefused(t *testing.T) {
	for what, c := range map[string]struct {
		set     func(a *managedServer)
		give    func(s *supervisor, reply func(error))
		want    string
		wantErr error
	}{
		"an unusable spec": {nil, func(s *supervisor, reply func(error)) { s.handleAdd(nil, AddServer{Name: "b", Reply: reply}) },
			"it has neither a command nor a url", nil},
		"an unusable new spec": {nil, func(s *supervisor, reply func(error)) { s.handleAdd(nil, AddServer{Name: "a", Reply: reply}) },
			"it has neither a command nor a url", nil},
		"a removal of what a file has": {func(a *managedServer) { a.configured, a.runtime = a.runtime, nil }, func(s *supervisor, reply func(error)) {
			s.handleRemove(nil, RemoveServer{Name: "a", Reply: reply})
		}, "it comes from the file", nil},
		"a removal of nobody": {nil, func(s *supervisor, reply func(error)) { s.handleRemove(nil, RemoveServer{Name: "b", Reply: reply}) }, "no such server", messages.ErrUnknownServer},
		"a second removal": {func(a *managedServer) { a.removing = true }, func(s *supervisor, reply func(error)) {
			s.handleRemove(nil, RemoveServer{Name: "a", Reply: reply})
		}, "no such server", messages.ErrUnknownServer},
		"a wish of nobody": {nil, func(s *supervisor, reply func(error)) {
			s.handleCommand(nil, ServerCommand{Name: "b", Event: lifecycle.Enable{}, Reply: reply})
		},
			"no such server", messages.ErrUnknownServer},
		"a wish of one that is removed": {func(a *managedServer) { a.removing = true }, func(s *supervisor, reply func(error)) {
			s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Enable{}, Reply: reply})
		}, "no such server", messages.ErrUnknownServer},
		"a reconnect of a disabled one": {func(a *managedServer) { a.wanted = false }, func(s *supervisor, reply func(error)) {
			s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Reconnect{}, Reply: reply})
		}, "it is disabled", messages.ErrDisabled},
		"a reconnect of one that waits for its approval": {func(a *managedServer) { a.spec.Hold = "it was not approved" }, func(s *supervisor, reply func(error)) {
			s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Reconnect{}, Reply: reply})
		}, "it was not approved", nil},
		"a reconnect of an invalid one": {func(a *managedServer) { a.spec.Invalid = "its url is none" }, func(s *supervisor, reply func(error)) {
			s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Reconnect{}, Reply: reply})
		}, "its url is none", nil},
	} {
		s, a, sent := directed(t)
		a.spec.Source = "the file"
		a.runtime = a.spec
		if c.set != nil {
			c.set(a)
		}
		before := *a
		replies := make(chan error, 10)
		c.give(s, func(err error) { replies <- err })
		if len(replies) != 1 {
			t.Fatalf("%s has %d answers", what, len(replies))
		}
		if err := <-replies; err == nil || !strings.Contains(err.Error(), c.want) || c.wantErr != nil && !errors.Is(err, c.wantErr) {
			t.Errorf("%s: %v", what, err)
		}
		if len(s.servers) != 1 || a.wanted != before.wanted || a.removing != before.removing || a.runtime != before.runtime || len(sent) != 0 {
			t.Errorf("%s: it was done all the same: %+v", what, a)
		}
	}
}

// Each command for a server that is removed and comes back waits for that.
func TestCommandsForAServerThatComesBackWait(t *testing.T) {
	for what, give := range map[string]func(s *supervisor, reply func(error)){
		"remove": func(s *supervisor, reply func(error)) { s.handleRemove(nil, RemoveServer{Name: "a", Reply: reply}) },
		"enable": func(s *supervisor, reply func(error)) {
			s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Enable{}, Reply: reply})
		},
		"connect": func(s *supervisor, reply func(error)) {
			s.handleAdd(nil, AddServer{Name: "a", Spec: messages.Spec{Command: "a"}, Reply: reply})
		},
	} {
		s, a, sent := directed(t)
		a.removing, a.liveEpoch = true, 3
		a.waitingCommands = append(a.waitingCommands, waitingCommand{run: func(actor.Context) {}})
		replied := 0
		give(s, func(error) { replied++ })
		if replied != 0 || len(a.waitingCommands) != 2 || len(sent) != 0 {
			t.Errorf("%s: %d answers, %d commands wait", what, replied, len(a.waitingCommands))
		}
	}
}

// What is told of a changed configuration names each server once for what happened to it, and says what is wrong with which.
func TestAChangedConfigurationIsToldWhole(t *testing.T) {
	c := config.Changes{Added: []string{"new"}, Removed: []string{"gone"}, Replaced: []string{"another"}, Adjusted: []string{"wider"},
		Moved: []string{"elsewhere"}, Kept: []string{"same"}}
	m := ConfigureServers{Specs: map[string]messages.Spec{"new": {Invalid: "its url is none"}, "same": {Command: "a"}}}
	got := m.SetResult(c)
	want := messages.SetServersResult{Added: []string{"another", "new"}, Removed: []string{"another", "gone"}, Adjusted: []string{"elsewhere", "wider"},
		Kept: []string{"same"}, Errors: map[string]string{"new": "its url is none"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := (ConfigureServers{}).SetResult(config.Changes{}); got.Added == nil || got.Removed == nil || got.Errors == nil {
		t.Errorf("lists that are null in JSON: %+v", got)
	}
}

// A configuration that comes while the manager closes is not begun.
func TestAConfigurationThatComesTooLateIsNotBegun(t *testing.T) {
	s, a, _ := directed(t)
	s.closing = &CloseAll{}
	if c := s.replaceConfigured(nil, ConfigureServers{Specs: map[string]messages.Spec{"b": {Command: "b"}}}); len(c.Added) != 0 {
		t.Errorf("%+v", c)
	}
	s.configureOne(nil, "a", &messages.Spec{Command: "other"})
	s.configureOne(nil, "b", &messages.Spec{Command: "other"})
	if len(s.servers) != 1 || a.configured != nil {
		t.Errorf("it was begun: %+v", s.servers)
	}
}

// A server is added while one of its name is being removed: SetServers has its answer at once, another command when it is done, and each has one.
func TestAnAddThatWaitsForARemovalIsAnsweredOnce(t *testing.T) {
	for _, early := range []bool{false, true} {
		s, a, _ := directed(t)
		a.runtime, a.removing = a.spec, true
		a.cell = actors.NewCell(&actors.View{Name: "a", Spec: a.spec})
		replies := 0
		s.handleAdd(nil, AddServer{Name: "a", Spec: *a.spec, Early: early, Reply: func(err error) {
			if replies++; err != nil {
				t.Error(err)
			}
		}})
		if replies == 1 != early || len(a.waitingCommands) != 1 {
			t.Errorf("early %v: %d answers, %d commands wait", early, replies, len(a.waitingCommands))
			continue
		}
		a.removing = false // the old one is gone, and its record stands here for the new one
		if a.waitingCommands[0].run(nil); replies != 1 {
			t.Errorf("early %v: %d answers", early, replies)
		}
	}
}

// Seed 20877532 of the simulation: while a server was being removed the configuration brought it back, its owner disabled it, the configuration took
// it away and brought it back once more; and that last server was disabled when the removal had ended. An add that waits brings the server back
// itself: what comes after it is for that server, and waits.
func TestACommandForAServerThatDoesNotComeBackIsRefused(t *testing.T) {
	s, a, _ := directed(t)
	a.removing, a.liveEpoch, a.runtime, a.configured = true, 3, nil, nil
	configure := func(specs map[string]messages.Spec) { s.replaceConfigured(nil, ConfigureServers{Specs: specs}) }
	both, none := map[string]messages.Spec{"a": {Command: "a"}}, map[string]messages.Spec{}
	var first, second []error
	disable := func(replies *[]error) {
		s.handleCommand(nil, ServerCommand{Name: "a", Event: lifecycle.Disable{}, Reply: func(err error) { *replies = append(*replies, err) }})
	}
	configure(both)
	disable(&first)
	if len(first) != 0 {
		t.Fatalf("it did not wait: %v", first)
	}
	configure(none)
	if len(first) != 1 || !errors.Is(first[0], messages.ErrUnknownServer) || a.comesBack() {
		t.Errorf("the server does not come back, and the command is answered with %v", first)
	}
	s.handleAdd(nil, AddServer{Name: "a", Spec: messages.Spec{Command: "a"}, Reply: func(error) {}})
	disable(&second)
	configure(both)
	configure(none)
	if len(second) != 0 || len(a.waitingCommands) != 2 {
		t.Errorf("the command for the server that an add brings back is answered with %v, and %d commands wait", second, len(a.waitingCommands))
	}
}
