package sim

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// messageActor is another actor in the manager's system, for scenarios with messages: it gives the owner's commands, makes the
// calls and reads, watches the events, and answers the servers' questions, all by message. The invariants judge the outcome
// like that of the facade.
type messageActor struct {
	world *simulation
	pid   *actor.PID
	// managerGone is closed when the manager's actor has ended.
	managerGone chan struct{}
	// eventSequence checks the events by message; only the actor's own turn uses it.
	eventSequence history.Sequence

	// mu guards followers, the waiting goroutines in the order in which they began to wait.
	mu        sync.Mutex
	followers []follower
}

// newMessageActor spawns the actor, which then watches and, if servers ask questions, offers to answer them.
func newMessageActor(w *simulation) *messageActor {
	p := &messageActor{world: w, managerGone: make(chan struct{})}
	props := actor.PropsFromFunc(p.receiveMessage, w.turns.actorOptions("program")...)
	p.pid = w.manager.System().Root.Spawn(props)
	return p
}

// rootContext returns the context from which goroutines outside of actors send.
func (p *messageActor) rootContext() *actor.RootContext { return p.world.manager.System().Root }

// receiveMessage handles one message of the actor.
func (p *messageActor) receiveMessage(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		to := p.world.manager.PID()
		c.Watch(to)
		c.Request(to, &messages.Watch{Buffer: 1 << 16})
		if slices.ContainsFunc(p.world.plan.Servers, func(s scenario.Server) bool { return s.Offers }) {
			c.Request(to, &messages.HandleRequests{Elicitation: true, ElicitationUrl: true, Sampling: true, Roots: true})
		}
	case *actor.Terminated:
		close(p.managerGone)
	case *messages.WatchEvent:
		e := m.ToEvent()
		if problem := p.eventSequence.Next(e); problem != "" {
			p.world.reportMisled("by message: " + problem)
		}
		if e.Kind == messages.EventPhase || e.Kind == messages.EventRemoved {
			p.wakeFollowers(e.Server)
		}
	case *messages.ServerRequest:
		// The actor must not sleep, so a timer sends the answer.
		root, to := p.rootContext(), c.Sender()
		time.AfterFunc(answerTime, func() {
			root.Send(to, &messages.ServerRequestReply{RequestId: m.GetRequestId(), Result: replyFor(m.GetMethod(), m.GetServer())})
		})
	case *messages.Done:
		if err := m.GetFailure().ToError(); err != nil {
			p.world.reportBrokenPromise("", "the program may neither watch nor answer: "+err.Error())
		}
	}
}

// errNoReply ends a request whose reply never comes. The contract of messages says: "If no reply arrives the outcome is
// unknown".
var errNoReply = &messages.Error{Op: "message", Outcome: messages.OutcomeUnknown, Class: messages.ClassCanceled,
	Text: "the manager has ended and there was no reply"}

// sendRequest sends a message replies times, from a new actor of its own, and waits for as many replies. Progress goes to
// onProgress and does not count as a reply.
func (p *messageActor) sendRequest(m proto.Message, replies int, onProgress func(any)) ([]any, error) {
	got := make(chan any, 16)
	self := p.rootContext().Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case actor.AutoReceiveMessage, actor.SystemMessage:
		default:
			got <- c.Message()
		}
	}))
	defer p.rootContext().Stop(self)
	for range replies {
		p.rootContext().RequestWithCustomSender(p.world.manager.PID(), m, self)
	}
	var all []any
	managerGone := p.managerGone
	var last <-chan time.Time
	for len(all) < replies {
		select {
		case v := <-got:
			if _, dead := v.(*actor.DeadLetterResponse); dead {
				return all, errNoReply
			}
			if progress, ok := v.(*messages.CallProgress); ok {
				if onProgress != nil {
					onProgress(progress)
				}
				continue
			}
			all = append(all, v)
		case <-managerGone:
			// A reply that was sent before the end arrives within this instant.
			managerGone, last = nil, time.After(time.Millisecond)
		case <-last:
			return all, errNoReply
		}
	}
	return all, nil
}

// requestReply sends a message that has one reply, and returns the reply.
func requestReply[T proto.Message](p *messageActor, m proto.Message) (reply T, err error) {
	all, err := p.sendRequest(m, 1, nil)
	if err != nil {
		return reply, err
	}
	reply, ok := all[0].(T)
	if !ok {
		return reply, fmt.Errorf("%T was answered with %T", m, all[0])
	}
	return reply, nil
}

// requestDone sends a command whose reply is Done, and returns the failure in it.
func (p *messageActor) requestDone(m proto.Message) error {
	d, err := requestReply[*messages.Done](p, m)
	if err != nil {
		return err
	}
	return d.GetFailure().ToError()
}

// timeoutMillis returns a duration in whole milliseconds, rounded up so that a short limit does not become 0, which means none.
func timeoutMillis(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64(math.Ceil(float64(d) / float64(time.Millisecond)))
}

// callTool makes a call by message. One call in seven is sent twice at once, like by a caller that does not know whether it
// arrived, and one in seven again after its end: the tool must run once, and all replies must be equal.
func (p *messageActor) callTool(c load.Call, name string, args []byte, timeout time.Duration) (*supervisor.Result, error) {
	m := &messages.CallTool{CallId: c.ID, Arguments: args, TimeoutMs: timeoutMillis(timeout), Progress: true, Caller: c.Caller()}
	if m.Tool = name; name == "" {
		m.Server, m.Tool = c.Stream.Server, c.Stream.Tool
	}
	times := 1
	if seedOf("twice", c.ID)%7 == 0 {
		times = 2
	}
	all, err := p.sendRequest(m, times, func(v any) {
		if id := v.(*messages.CallProgress).GetCallId(); id != c.ID {
			p.world.reportBrokenPromise(c.Stream.Server, "the caller of "+c.ID+" was told of the progress of "+id)
		}
	})
	if err == nil && seedOf("again", c.ID)%7 == 0 {
		// The manager may have ended, and then no further reply comes.
		more, _ := p.sendRequest(m, 1, nil)
		all = append(all, more...)
	}
	var replies []*messages.CallToolReply
	for _, v := range all {
		r, ok := v.(*messages.CallToolReply)
		if !ok || r.GetCallId() != c.ID {
			p.world.reportBrokenPromise(c.Stream.Server, fmt.Sprintf("the call %s was answered with %v", c.ID, v))
			continue
		}
		replies = append(replies, r)
	}
	if len(replies) == 0 {
		return nil, err
	}
	first := replies[0]
	for _, r := range replies[1:] {
		if r.GetOutcome() != first.GetOutcome() || !bytes.Equal(r.GetResult(), first.GetResult()) {
			p.world.reportBrokenPromise(c.Stream.Server, fmt.Sprintf("the call %s was sent twice and answered with %s and with %s", c.ID, first.GetOutcome(),
				r.GetOutcome()))
		}
	}
	if err := first.GetFailure().ToError(); err != nil {
		return nil, err
	}
	return &supervisor.Result{Raw: first.GetResult(), IsError: messages.Outcome(first.GetOutcome()) == messages.OutcomeToolError}, nil
}

// commandFunc returns the function that gives a command by message; nil if no message corresponds to the command.
func (p *messageActor) commandFunc(ctx context.Context, o scenario.PlannedCommand, spec messages.Spec) func() error {
	switch o.Do {
	case "disable", "disconnect":
		p.world.servers[o.Server].commandCount.Add(1)
		return func() error {
			return p.requestDone(&messages.DisableServer{Name: o.Server, Disconnect: o.Do == "disconnect"})
		}
	case "remove":
		p.world.servers[o.Server].commandCount.Add(1)
		return func() error { return p.requestDone(&messages.RemoveServer{Name: o.Server}) }
	case "enable":
		return p.requestSettled(ctx, o.Server, &messages.EnableServer{Name: o.Server}, false)
	case "reconnect":
		return p.requestSettled(ctx, o.Server, &messages.ReconnectServer{Name: o.Server}, false)
	case "add", "respec", "adjust":
		return p.requestSettled(ctx, o.Server, &messages.AddServer{Name: o.Server, Spec: spec.ToProto()}, spec.Disabled)
	}
	return nil
}

// requestSettled sends a command, whose Done only acknowledges it, and then follows the server by message until its attempt has
// ended, to return what the facade would have returned. disables is set if the command itself disables the server.
func (p *messageActor) requestSettled(ctx context.Context, server string, m proto.Message, disables bool) func() error {
	count := p.world.servers[server].commandCount.Add(1)
	return func() error {
		moved := make(chan struct{}, 1)
		defer p.followServer(server, moved)()
		if err := p.requestDone(m); err != nil {
			return err
		}
		// The manager handles the command in its own actor; by now the server's actor has it too.
		time.Sleep(time.Millisecond)
		for {
			status, err := requestReply[*messages.StatusReply](p, &messages.GetStatus{Names: []string{server}})
			if err != nil {
				return err
			}
			overtaken := p.world.servers[server].commandCount.Load() != count
			if len(status.GetServers()) == 0 {
				if overtaken {
					// A later command has removed the server.
					return nil
				}
			} else {
				switch s := status.GetServers()[0]; messages.Phase(s.GetStatus()) {
				case messages.Failed, messages.NeedsAuth:
					return &messages.Error{Op: "connect", Class: messages.Class(s.GetClass()), Server: server, Text: s.GetError()}
				case messages.Disabled:
					if disables || overtaken {
						return nil
					}
				case messages.Connected:
					return nil
				case messages.Pending:
					if s.GetStep() == string(messages.Idle) {
						return nil
					}
				}
			}
			select {
			case <-moved:
			case <-p.managerGone:
				return errNoReply
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// follower is a goroutine that waits for changes of a server.
type follower struct {
	server string
	moved  chan struct{}
}

// followServer makes moved receive a token at every change of a server, until the caller calls end. moved has room for one
// token, so that no wake-up is lost.
func (p *messageActor) followServer(server string, moved chan struct{}) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = append(p.followers, follower{server, moved})
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.followers = slices.DeleteFunc(p.followers, func(f follower) bool { return f.moved == moved })
	}
}

// wakeFollowers wakes the goroutines that follow a server.
func (p *messageActor) wakeFollowers(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.followers {
		if f.server == server {
			select {
			case f.moved <- struct{}{}:
			default:
			}
		}
	}
}

// setServers gives the manager the whole set of servers by message.
func (p *messageActor) setServers(_ context.Context, specs map[string]messages.Spec) (messages.SetServersResult, error) {
	m := &messages.SetServers{Servers: map[string]*messages.ServerSpec{}}
	for name, spec := range specs {
		m.Servers[name] = spec.ToProto()
	}
	r, err := requestReply[*messages.SetServersReply](p, m)
	if err != nil {
		return messages.SetServersResult{}, err
	}
	return messages.SetServersResult{Added: r.GetAdded(), Removed: r.GetRemoved(), Errors: r.GetErrors(), Adjusted: r.GetAdjusted(), Kept: r.GetKept()},
		r.GetFailure().ToError()
}

// compareLists checks that the tools and servers listed by message are those of the facade. It compares only if the catalog has
// not changed in between.
func (p *messageActor) compareLists() {
	m := p.world.manager
	before := m.Tools()
	tools, err := requestReply[*messages.ToolsReply](p, &messages.ListTools{})
	if err != nil || m.Tools() != before || tools.GetGeneration() != before.Generation() {
		return // it has changed meanwhile
	}
	var byMessage, byFacade []string
	for _, t := range tools.GetTools() {
		byMessage = append(byMessage, t.GetQualifiedName()+" "+t.GetServer()+" "+t.GetName()+" "+t.GetState())
	}
	for e := range before.All() {
		byFacade = append(byFacade, e.Name+" "+e.Tool.Server+" "+e.Tool.Name+" "+e.State.String())
	}
	if !slices.Equal(byMessage, byFacade) {
		p.world.reportBrokenPromise("", fmt.Sprintf("%d tools are listed by message and %d by the facade, of one generation", len(byMessage), len(byFacade)))
	}
	for _, server := range m.Servers() {
		some, err := requestReply[*messages.ToolsReply](p, &messages.ListTools{Servers: []string{server}})
		if err != nil || m.Tools() != before {
			return
		}
		if known := before.Server(server); some.GetFailure() == nil && len(known) != len(some.GetTools()) {
			p.world.reportBrokenPromise(server, fmt.Sprintf("%d of its tools are listed by message and %d by the facade", len(some.GetTools()), len(known)))
		}
	}
	status, err := requestReply[*messages.StatusReply](p, &messages.GetStatus{})
	if err == nil && len(status.GetServers()) != len(m.Servers()) {
		p.world.reportBrokenPromise("", fmt.Sprintf("the status by message has %d servers and the manager %d", len(status.GetServers()), len(m.Servers())))
	}
}

// readItem is load.Read by message. What has no message goes through the facade.
func (p *messageActor) readItem(ctx context.Context, m *supervisor.Manager, c load.Call) (rev int, err error) {
	server, ms := c.Stream.Server, int64(defaultReadTimeout/time.Millisecond)
	one := "chaos://" + server + "/one"
	switch c.Stream.Read {
	case "resource":
		q := &messages.ReadResource{RequestId: c.ID, Server: server, Uri: one, TimeoutMs: ms, Caller: c.Caller()}
		if !c.EndsSubscription() {
			q.Server = ""
		}
		r, err := requestReply[*messages.ReadResourceReply](p, q)
		if err == nil {
			err = r.GetFailure().ToError()
		}
		if err != nil {
			return 0, err
		}
		return load.ParseState((&supervisor.ResourceResult{Raw: r.GetResult()}).Text(), server), nil
	case "prompt":
		r, err := requestReply[*messages.GetPromptReply](p, &messages.GetPrompt{RequestId: c.ID, Server: server, Prompt: "greet",
			Arguments: map[string]string{"who": "all"}, TimeoutMs: ms, Caller: c.Caller()})
		if err == nil {
			err = r.GetFailure().ToError()
		}
		if err != nil {
			return 0, err
		}
		for _, said := range (&supervisor.PromptResult{Raw: r.GetResult()}).Messages() {
			rev = load.ParseState(said.Content.Text, server)
		}
		return rev, nil
	case "resources":
		r, err := requestReply[*messages.ResourcesReply](p, &messages.ListResources{Servers: []string{server}, TimeoutMs: ms})
		for _, one := range r.GetResources() {
			rev = max(rev, load.ParseNumber(one.GetName(), "item-"))
		}
		return rev, firstFailure(err, r.GetFailures())
	case "prompts":
		r, err := requestReply[*messages.PromptsReply](p, &messages.ListPrompts{Servers: []string{server}, TimeoutMs: ms})
		for _, one := range r.GetPrompts() {
			rev = max(rev, load.ParseNumber(one.GetName(), "greet-"))
		}
		return rev, firstFailure(err, r.GetFailures())
	case "templates":
		r, err := requestReply[*messages.ResourceTemplatesReply](p, &messages.ListResourceTemplates{Servers: []string{server}, TimeoutMs: ms})
		for _, one := range r.GetTemplates() {
			rev = max(rev, load.ParseNumber(one.GetName(), scenario.TemplatePrefix))
		}
		return rev, firstFailure(err, r.GetFailures())
	case "complete":
		r, err := requestReply[*messages.CompleteReply](p, &messages.Complete{RequestId: c.ID, Server: server, Prompt: "greet", Argument: "who", Value: "a",
			TimeoutMs: ms, Caller: c.Caller()})
		if err == nil {
			err = r.GetFailure().ToError()
		}
		return 0, err
	case "subscribe":
		if c.EndsSubscription() {
			return 0, p.requestDone(&messages.UnsubscribeResource{Server: server, Uri: one})
		}
		return 0, p.requestDone(&messages.SubscribeResource{Server: server, Uri: one})
	}
	return load.Read(ctx, m, c)
}

// firstFailure returns err, or the first of the failures of a list.
func firstFailure(err error, failures []*messages.Failure) error {
	if err == nil && len(failures) > 0 {
		err = failures[0].ToError()
	}
	return err
}
