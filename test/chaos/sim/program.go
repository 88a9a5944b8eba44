package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// embeddingProgram is the rest of the program that embeds the manager, beside its callers and its owner: it may run the manager as
// the child of an actor, pass calls through interceptors and log through log/slog, as the seed has it, and at every glance it uses
// one more of the functions that only read. It checks what they promise whatever the servers do. Only the loop uses its fields.
type embeddingProgram struct {
	world *simulation
	// turn counts the uses, which take turns.
	turn int
	// catalog is the snapshot of the last comparison.
	catalog *supervisor.Snapshot
}

// looseBound is more calls than a server of a day ever has under way.
const looseBound = 10_000

// drawOne reports whether the program of this seed does something that one program in n does.
func (p *embeddingProgram) drawOne(what string, n uint64) bool {
	return seedOf("program", what, strconv.FormatUint(p.world.plan.Seed, 10))%n == 0
}

// configure adds the program's interceptors and logger to the manager's configuration.
func (p *embeddingProgram) configure(cfg *supervisor.Config) {
	if p.drawOne("interceptors", 3) {
		cfg.Interceptors = append(cfg.Interceptors, p.watchRequest, p.markRequest)
		cfg.InlineInterceptors = p.drawOne("inline", 2)
	}
	// It binds no server, and each that has a bound of its own keeps that.
	if p.drawOne("bound", 3) {
		cfg.MaxInFlight = looseBound
	}
	if p.drawOne("slog", 3) {
		cfg.Logger = supervisor.NewSlogLogger(slogChecker{scanner: &p.world.secrets, w: p.world})
	}
}

// start starts the manager, by itself or as the child of an actor.
func (p *embeddingProgram) start(cfg supervisor.Config) (*supervisor.Manager, error) {
	if !p.drawOne("props", 4) {
		return supervisor.Start(context.Background(), cfg)
	}
	// The throttle for dead letters keeps a goroutine for its interval, and the run ends when no goroutine is left.
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(time.Nanosecond))
	started := make(chan *supervisor.Manager, 1)
	// A manager that cannot be started is a failure of its actor, which the strategy of the root would start again without end.
	failed := make(chan error, 1)
	strategy := actor.NewOneForOneStrategy(0, 0, func(reason any) actor.Directive {
		err, ok := reason.(error)
		if !ok {
			err = fmt.Errorf("%v", reason)
		}
		select {
		case failed <- err:
		default:
		}
		return actor.StopDirective
	})
	system.Root.WithGuardian(strategy).Spawn(supervisor.Props(cfg, func(m *supervisor.Manager) { started <- m }))
	select {
	case m := <-started:
		return m, nil
	case err := <-failed:
		return nil, err
	}
}

// watchRequest is the first interceptor: it checks what comes back of every request. Any goroutine of a caller runs it.
func (p *embeddingProgram) watchRequest(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
	res, err := next(ctx, r)
	var typed *supervisor.Error
	switch {
	case err == nil && res == nil:
		p.world.reportBrokenPromise(r.Server, "an interceptor got neither a response nor an error for "+r.Method)
	case err == nil && r.Server != "" && res.Server != r.Server:
		p.world.reportBrokenPromise(r.Server, "an interceptor asked this server for "+r.Method+" and was told that "+res.Server+" answered")
	case err != nil && !errors.Is(err, errRefusedByProgram) && !errors.As(err, &typed):
		p.world.reportBrokenPromise(r.Server, "an interceptor got an error of another type: "+err.Error())
	}
	return res, err
}

// markRequest is the second interceptor: it gives calls of tools another _meta, as tracing does.
func (p *embeddingProgram) markRequest(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
	if r.Name == refusedTool || r.Name == "mcp__nobody__"+refusedTool {
		return nil, errRefusedByProgram
	}
	if r.Method == actors.CallTool {
		r.Meta = json.RawMessage(`{"sim/trace":"00-1"}`)
	}
	return next(ctx, r)
}

// callArguments returns the arguments of a call in one of the forms that a program may use. All mean the same.
func callArguments(n int, id string, size int) any {
	switch n % 4 {
	case 0:
		return map[string]any{"call": id, "size": size}
	case 1:
		return struct {
			Call string `json:"call"`
			Size int    `json:"size"`
		}{id, size}
	case 2:
		return []byte(fmt.Sprintf(`{"call":%q,"size":%d}`, id, size))
	}
	return json.RawMessage(fmt.Sprintf(`{"call":%q,"size":%d}`, id, size))
}

// lookAround uses one of the functions that read, on one server: another one at each glance.
func (p *embeddingProgram) lookAround() {
	w := p.world
	name := w.plan.Servers[p.turn%len(w.plan.Servers)].Name
	looks := []func(name string, round int){withoutRound(p.awaitReady), withoutRound(p.awaitSettled), withoutRound(p.readLogs), withoutRound(p.compareCatalogs),
		withoutRound(p.callNobody), withoutRound(p.askByMessage), withoutRound(p.fetchEndedTask), p.configureNothing, p.giveImpossible}
	look, round := looks[p.turn%len(looks)], p.turn/len(looks)
	p.turn++
	if w.plan.Scenario.Manager.BrokenActors && w.virtualNow < w.plan.Heal {
		w.breakSomeActor(name)
	}
	w.users.runAsUser(func() { look(name, round) })
}

// withoutRound is for what does the same in each round of the uses.
func withoutRound(look func(name string)) func(string, int) {
	return func(name string, _ int) { look(name) }
}

// lookTime bounds a wait of the program.
const lookTime = 3 * time.Second

// awaitReady waits until a server can be called. An error must be the manager's own, and say of which server it is.
func (p *embeddingProgram) awaitReady(name string) {
	ctx, cancel := context.WithTimeout(p.world.users.ctx, lookTime)
	defer cancel()
	p.checkWait(name, "Ready", p.world.manager.Ready(ctx, name))
}

// awaitSettled waits until a server changes by itself no more.
func (p *embeddingProgram) awaitSettled(name string) {
	ctx, cancel := context.WithTimeout(p.world.users.ctx, lookTime)
	defer cancel()
	p.checkWait(name, "Settled", p.world.manager.Settled(ctx, name))
}

// checkWait checks the error of a wait for one server.
func (p *embeddingProgram) checkWait(name, what string, err error) {
	if err == nil {
		return
	}
	p.world.secrets.checkError(p.world, name, "the error of "+what, err)
	var typed *supervisor.Error
	if !errors.As(err, &typed) || typed.Server != name && !errors.Is(err, supervisor.ErrClosed) {
		p.world.reportBrokenPromise(name, fmt.Sprintf("%s for this server ended with an error that is not about it: %v", what, err))
	}
}

// maxLogLines is the number of messages that the manager promises to keep at most of one server.
const maxLogLines = 1000

// readLogs reads the log messages of a server: no more than are promised, and in a form that travels whole.
func (p *embeddingProgram) readLogs(name string) {
	lines := p.world.manager.Logs(name)
	if len(lines) > maxLogLines {
		p.world.reportBrokenPromise(name, fmt.Sprintf("%d log messages of this server are kept, and at most %d are promised", len(lines), maxLogLines))
	}
	for _, line := range lines {
		p.world.secrets.checkText(p.world, name, "the server's log", line.Logger)
		if p.world.secrets.hasSecret(string(line.Data)) {
			p.world.secrets.reportLeak(p.world, name, "a secret in the server's log")
		}
		back := actors.LogLineFromProto(line.ToProto())
		if !back.Time.Equal(line.Time) || back.Epoch != line.Epoch || !reflect.DeepEqual(back.LogEntry, line.LogEntry) {
			p.world.reportBrokenPromise(name, "a log message of this server is another one after it has travelled")
			return
		}
	}
}

// compareCatalogs compares the catalog with that of the last comparison: what was added and removed must explain the sizes.
func (p *embeddingProgram) compareCatalogs(string) {
	old, now := p.catalog, p.world.manager.Tools()
	p.catalog = now
	if old == nil {
		return
	}
	d := catalog.Diff(old, now)
	if got := old.Len() - len(d.Removed) + len(d.Added); got != now.Len() {
		p.world.reportBrokenPromise("", fmt.Sprintf("the catalog has %d tools, and by the difference to the one before it should have %d", now.Len(), got))
	}
	if d.Empty() && now.Len() != old.Len() {
		p.world.reportBrokenPromise("", "two catalogs of different sizes do not differ")
	}
}

// refusedTool is the name of a tool that the interceptors refuse.
const refusedTool = "refused"

var errRefusedByProgram = errors.New("nobody may call it")

// callNobody makes calls that cannot reach a server: of a server that nobody has added, and with arguments that cannot be written. Each
// is refused, and nothing is sent.
func (p *embeddingProgram) callNobody(string) {
	for _, c := range []struct {
		name string
		args any
	}{
		{"mcp__nobody__read", nil}, {"mcp__no body", map[string]any(nil)}, {"read", map[string]any{}}, {"", nil},
		{"mcp__nobody__" + refusedTool, nil}, {"mcp__nobody__read", map[string]any{"f": func() {}}}, {"mcp__nobody__read", make(chan int)},
	} {
		_, err := p.world.manager.CallTool(p.world.users.ctx, c.name, c.args)
		if err == nil || messages.OutcomeOf(err) != messages.OutcomeNotSent {
			p.world.reportBrokenPromise("", fmt.Sprintf("the call of %q, which no server has, ended with %v", c.name, err))
		}
	}
	for what, err := range p.useServer(p.world.users.ctx, nobody) {
		if !errors.Is(err, supervisor.ErrUnknownServer) && !hasEnded(err) {
			p.world.reportBrokenPromise("", fmt.Sprintf("%s of a server that does not exist ended with %v", what, err))
		}
	}
}

// nobody is a server that does not exist.
const nobody = "nobody"

// hasEnded reports whether an error says that the manager or the program's own time has ended.
func hasEnded(err error) bool {
	return errors.Is(err, supervisor.ErrClosed) || errors.Is(err, context.Canceled)
}

// useServer uses what a manager does for one server, and returns the error of each.
func (p *embeddingProgram) useServer(ctx context.Context, name string) map[string]error {
	m := p.world.manager
	all := map[string]error{
		"Disconnect": m.Disconnect(ctx, name), "Toggle off": m.Toggle(ctx, name, false), "Toggle on": m.Toggle(ctx, name, true),
		"Reconnect": m.Reconnect(ctx, name), "Refresh": m.Refresh(ctx, name), "Remove": m.Remove(ctx, name),
		"Ready": m.Ready(ctx, name), "Settled": m.Settled(ctx, name), "SubscribeResource": m.SubscribeResource(ctx, name, "x://y"),
		"UnsubscribeResource": m.UnsubscribeResource(ctx, name, "x://y"), "CancelTask": m.CancelTask(ctx, name, "one"),
	}
	_, all["CallServerTool"] = m.CallServerTool(ctx, name, "read", nil)
	_, all["ReadServerResource"] = m.ReadServerResource(ctx, name, "x://y")
	_, all["GetServerPrompt"] = m.GetServerPrompt(ctx, name, "greet", nil)
	_, all["Ping"] = m.Ping(ctx, name)
	_, all["Tasks"] = m.Tasks(ctx, name)
	_, all["TaskResult"] = m.TaskResult(ctx, name, "one")
	return all
}

// useClosed uses a manager that is closed: everything says so, and nothing waits.
func (p *embeddingProgram) useClosed() {
	m, ctx := p.world.manager, context.Background()
	all := p.useServer(ctx, p.world.plan.Servers[0].Name)
	all["Connect"], all["ConnectAll"], all["DisconnectAll"] = m.Connect(ctx, "new", supervisor.Spec{}), m.ConnectAll(ctx), m.DisconnectAll(ctx)
	_, all["SetServers"] = m.SetServers(ctx, nil)
	_, all["Configure"] = m.Configure(ctx, nil)
	_, all["CallTool"] = m.CallTool(ctx, "mcp__nobody__read", nil)
	_, all["ToolsOf"] = m.ToolsOf(ctx)
	_, all["Resources"] = m.Resources(ctx)
	_, all["Prompts"] = m.Prompts(ctx)
	for what, err := range all {
		if !errors.Is(err, supervisor.ErrClosed) {
			p.world.reportBrokenPromise("", fmt.Sprintf("%s after Close ended with %v", what, err))
		}
	}
	if err := m.Close(ctx); err != nil {
		p.world.reportBrokenPromise("", fmt.Sprintf("a second Close ended with %v", err))
	}
}

// configureNothing gives the manager an empty configuration, of which no server is: that changes nothing. Every second time it configures
// a server that cannot work before, which goes then.
func (p *embeddingProgram) configureNothing(_ string, round int) {
	if p.world.plan.Scenario.Manager.Configured {
		return // it would take away the servers of the plan
	}
	if round%2 == 0 {
		p.configureImpossible(p.world.users.ctx, p.impossibleSpec(round/2))
	}
	for range 2 {
		res, err := p.world.manager.Configure(p.world.users.ctx, nil)
		if removed := slices.DeleteFunc(res.Removed, func(name string) bool { return name == misfit }); err == nil && len(res.Added)+len(removed)+len(res.Adjusted)+len(res.Errors) > 0 {
			p.world.reportBrokenPromise("", fmt.Sprintf("an empty configuration changed %+v", res))
		}
	}
}

// fetchEndedTask asks a server of the legacy era for its tasks, and for the result of the newest that is complete: it is one. It leaves
// servers alone that are ever lazy, because the record would not show that they were used.
func (p *embeddingProgram) fetchEndedTask(name string) {
	w := p.world
	if s := w.servers[name].server; s.Tasks == "" || s.Connect == messages.Lazy || slices.ContainsFunc(w.plan.Commands, func(o scenario.PlannedCommand) bool {
		return o.Server == name && o.With["connect"] != ""
	}) {
		return
	}
	ctx, cancel := context.WithTimeout(w.users.ctx, lookTime)
	defer cancel()
	all, err := w.manager.Tasks(ctx, name)
	if err != nil {
		return // the server is away, or cannot list its tasks
	}
	for _, t := range slices.Backward(all) {
		if t.State != messages.TaskCompleted {
			continue
		}
		res, err := w.manager.TaskResult(ctx, name, t.ID)
		if err == nil && len(res.Raw) == 0 {
			w.reportBrokenPromise(name, "the result of the task "+t.ID+" is neither a result nor an error")
		}
		return
	}
}

// askByMessage asks what actors may ask about a server, and compares the answers with the functions of the manager where these do not
// change from one moment to the next.
func (p *embeddingProgram) askByMessage(name string) {
	asker := &messageActor{world: p.world, managerGone: make(chan struct{})}
	for _, question := range []proto.Message{
		&messages.GetHistory{Server: name}, &messages.GetLogs{Server: name}, &messages.GetPermissions{}, &messages.GetStatus{Names: []string{name}},
		&messages.GetHistory{Server: nobody}, &messages.GetLogs{Server: nobody},
	} {
		answers, err := asker.sendRequest(question, 1, nil)
		if err != nil {
			return // the manager has ended
		}
		if problem := answerProblem(question, answers[0]); problem != "" {
			p.world.reportBrokenPromise(name, fmt.Sprintf("%T was answered with %T: %s", question, answers[0], problem))
		}
	}
}

// answerProblem returns what is wrong with the answer to a question about a server, empty if nothing is. Any server but nobody may have
// been there and be removed.
func answerProblem(question, answer any) string {
	var failure error
	var about string
	switch r := answer.(type) {
	case *messages.HistoryReply:
		failure, about = r.GetFailure().ToError(), question.(*messages.GetHistory).GetServer()
		if failure == nil && r.GetStatus().GetName() != about {
			return "its status is that of " + r.GetStatus().GetName()
		}
	case *messages.LogsReply:
		failure, about = r.GetFailure().ToError(), question.(*messages.GetLogs).GetServer()
	case *messages.StatusReply, *messages.PermissionsReply:
		return ""
	default:
		return "that is no answer to it"
	}
	if about == nobody && !errors.Is(failure, supervisor.ErrUnknownServer) {
		return fmt.Sprintf("the server does not exist, and the failure is %v", failure)
	}
	return ""
}
