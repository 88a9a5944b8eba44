package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/agents"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/chaos/resources"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sent"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Options hold the settings of [Run] beside the plan. The zero value works.
type Options struct {
	// Program is the path of the program that becomes a peer when it is started with the arguments that [Main] knows; empty
	// means this program.
	Program string
	// Guard receives every process of the manager; nil means that no guardian runs. Peers end with this process without one as
	// well.
	Guard stdio.Guard
	// Machine makes the servers; nil means sent.NewRealMachine.
	Machine func(peer.Config) peer.Machine
	// Progress is called every reportEvery with the state of the run, always from one goroutine; nil means that nothing is
	// reported.
	Progress func(Progress)
}

// closeTimeout bounds the manager's Close. Half of it is for calls under way; the other half exceeds the time that stopping all
// servers in two steps (end of input, SIGTERM) takes on a busy machine.
const closeTimeout = 20 * time.Second

// Run runs the plan and returns its history. An error is an [*Error] and means that the run could not be made; the history is
// then nil. Run counts the descriptors and goroutines of the whole process, so that no other run may go on beside it.
func Run(ctx context.Context, plan scenario.Plan, o Options) (*history.History, error) {
	// The processes that existed before (a guardian, for instance) do not count as leftovers of the run.
	known := map[int]bool{}
	for _, p := range resources.Processes(resources.Options{}) {
		known[p.PID] = true
	}
	// The heap is measured only now, because newRun allocates the servers; descriptors and goroutines of before are what must
	// remain.
	before := resources.Count(resources.Options{Known: known})
	r, err := newRun(plan, o)
	if err != nil {
		return nil, err
	}
	defer r.servers.Close()
	r.knownProcesses = known
	before.Heap = resources.Heap()
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.Resources, Text: "baseline", House: &before})
	r.beginInitialFaults()
	if err := r.startManager(ctx); err != nil {
		return nil, err
	}
	if err := r.startAgents(); err != nil {
		return nil, err
	}
	meter := startLagMeter()
	stop := r.reportProgress()
	r.runPlan(ctx)
	r.awaitSettled(ctx)
	r.closeManager()
	stop()
	r.checkLeftovers(before, meter.stopMeasuring())
	return r.sortedHistory(), nil
}

// run is one run while it lasts. Its fields are set before the manager starts, and afterwards only read, unless a lock stands
// beside them.
type run struct {
	plan    scenario.Plan
	options Options
	began   time.Time
	rec     *history.Recorder
	// abandonable maps the id of a call that its caller will give up at an event of the server to its *abandonableCall.
	abandonable sync.Map

	// knownProcesses are the ids of the processes that existed before the run.
	knownProcesses map[int]bool
	servers        *performer.Group
	secrets        *secretScanner
	// settledHashes is used only by the goroutine of Run, in isSettled.
	settledHashes toolHashes

	// tokensMu guards tokens, the credential of each server behind a socket by the server's name.
	tokensMu sync.Mutex
	tokens   map[string]*bearerToken

	manager *supervisor.Manager
	// fleet is the agents of a gateway before the manager; nil without any.
	fleet *agents.Fleet
	// watchDone is closed when the manager's events have been read to their end.
	watchDone chan struct{}
	progress  progressCounts
	driver    driver
}

// newRun opens the servers.
func newRun(plan scenario.Plan, o Options) (_ *run, err error) {
	if o.Machine == nil {
		o.Machine = sent.NewRealMachine
	}
	r := &run{plan: plan, options: o, began: time.Now(), settledHashes: toolHashes{}, tokens: map[string]*bearerToken{}, watchDone: make(chan struct{})}
	r.rec = history.NewRecorder(plan, r.elapsedTime)
	r.secrets = newSecretScanner(r.recordEvent)
	r.servers, err = performer.Open(plan, performer.Options{
		Record: r.recordEvent, Now: r.elapsedTime, Machine: o.Machine, Program: o.Program, Secret: r.secrets.newSecret,
	})
	if err != nil {
		return nil, &Error{Text: err.Error(), Err: err}
	}
	return r, nil
}

// elapsedTime returns how long the run has lasted, at least 1 ns, because a time of 0 asks the recorder to take the time
// itself.
func (r *run) elapsedTime() time.Duration { return max(time.Since(r.began), 1) }

// recordEvent writes an event into the history. An event of a server about a call may be the one at which the caller gives the
// call up.
func (r *run) recordEvent(e history.Event) {
	r.rec.Add(e)
	if e.Call != "" && e.Side == history.World {
		r.noteCallEvent(&e)
	}
}

// recordHarness records something that the harness did.
func (r *run) recordHarness(kind history.Kind, text string) {
	r.recordEvent(history.Event{Side: history.Harness, Kind: kind, Text: text})
}

// closeManager records the last statuses, ends the load, closes the manager and waits for the calls. The order matters: secrets
// are sought while the processes still run, and the resources are counted while everything is open.
func (r *run) closeManager() {
	r.recordStatuses("at the end")
	r.scanForSecrets()
	now := resources.Count(resources.Options{Heap: true, Known: r.knownProcesses})
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.Resources, Text: "before close", House: &now})
	r.driver.stopLoad()
	r.progress.enterStage("closing")
	r.recordHarness(history.Closing, "")
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	text := ""
	r.closeAgents()
	if err := r.manager.Close(ctx); err != nil {
		text = err.Error()
	}
	r.driver.waitForCalls()
	<-r.watchDone
	r.recordHarness(history.Closed, text)
}

// sortedHistory returns the history sorted by time. Each side records in its own goroutine, a moment after the event, so that
// the recorder's order is not that of the times.
func (r *run) sortedHistory() *history.History {
	h := r.rec.History()
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return int(a.T - b.T) })
	for i := range h.Events {
		h.Events[i].Order = i + 1
	}
	return h
}
