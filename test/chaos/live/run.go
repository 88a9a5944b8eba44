package live

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/resources"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Options are what a run may be given beside its plan. The zero value works.
type Options struct {
	// Program is what becomes a peer when it is started with the arguments that Main knows; this program if empty.
	Program string
	// Guard is told of every process of the manager; nil is nobody. Peers end with this process without one as well.
	Guard transports.Guard
	// Machine makes the servers; peer.New if nil.
	Machine func(peer.Config) peer.Machine
	// Progress is told a few times per second how far the run is, from one goroutine; nil is nobody.
	Progress func(Progress)
}

// closeTimeout bounds the manager's Close: half of it is for calls that are under way, the other half is more than a stop
// ladder of two rungs takes when all servers are ended together on a busy machine.
const closeTimeout = 20 * time.Second

// Run runs plan and returns what happened. An error means that the run could not be made; the history is that of what was
// until then, and may be nil. It is the only run of this process while it lasts, if descriptors and goroutines are to be
// counted rightly.
func Run(ctx context.Context, plan scenario.Plan, o Options) (*history.History, error) {
	known := map[int]bool{} // a guardian, and what else is not the run's
	for _, p := range resources.Processes(resources.Options{}) {
		known[p.PID] = true
	}
	before := resources.Count(resources.Options{Known: known})
	r, err := newRun(plan, o)
	if err != nil {
		return nil, err
	}
	defer r.releaseAll()
	r.knownProcesses = known
	before.Heap = resources.Heap()
	r.recordEvent(history.Event{Side: history.Harness, Kind: history.Resources, Text: "baseline", House: &before})
	r.beginInitialFaults()
	if err := r.startManager(ctx); err != nil {
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

// run is one run while it lasts.
type run struct {
	plan    scenario.Plan
	options Options
	began   time.Time
	rec     *history.Recorder
	// abandonable are calls that their callers give up at a moment that is still to come: *leaver by the call's id.
	abandonable sync.Map

	children       *childListener
	descriptors    *descriptorLimit
	knownProcesses map[int]bool // processes that were there before
	folder         string       // for the links of programs that shall vanish; empty if there are none
	servers        map[string]*chaosServer
	secrets        *secretScanner
	settledHashes  toolHashes // of the goroutine that settles

	tokensMu sync.Mutex
	tokens   map[string]*bearerToken

	manager   *supervisor.Manager
	watchDone chan struct{} // closed when the manager's events have been read to their end
	progress  progressCounts
	driver    driver
}

// newRun opens everything that the servers need.
func newRun(plan scenario.Plan, o Options) (_ *run, err error) {
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return nil, &Error{Text: "this program does not know its own path: " + err.Error(), Err: err}
		}
	}
	if o.Machine == nil {
		o.Machine = peer.New
	}
	r := &run{plan: plan, options: o, began: time.Now(), servers: map[string]*chaosServer{}, descriptors: &descriptorLimit{}, settledHashes: toolHashes{}, tokens: map[string]*bearerToken{}, watchDone: make(chan struct{})}
	r.rec = history.NewRecorder(plan, r.elapsedTime)
	r.secrets = newSecretScanner(r.recordEvent)
	if r.children, err = openChildListener(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // what a later step could not do takes the earlier ones with it
			r.releaseAll()
		}
	}()
	if slices.ContainsFunc(plan.Faults, func(f scenario.PlannedFault) bool { return f.Fault == faultMissingBinary }) {
		if r.folder, err = os.MkdirTemp("", "mcpvisor-chaos-"); err != nil {
			return nil, &Error{Text: "no folder can be made for the run: " + err.Error(), Err: err}
		}
	}
	for _, srv := range plan.Servers {
		s, err := r.newChaosServer(srv)
		if err != nil {
			return nil, err
		}
		r.servers[srv.Name] = s
	}
	r.children.acceptChildren(r.servers)
	return r, nil
}

// elapsedTime is how long the run has lasted. It is never 0, which would mean that the recorder shall take the time.
func (r *run) elapsedTime() time.Duration { return max(time.Since(r.began), 1) }

func (r *run) recordEvent(e history.Event) {
	r.rec.Add(e)
	if e.Call != "" && e.Side == history.World {
		r.noteCallEvent(&e)
	}
}

// recordHarness records what the harness did.
func (r *run) recordHarness(kind history.Kind, text string) {
	r.recordEvent(history.Event{Side: history.Harness, Kind: kind, Text: text})
}

// closeManager closes the manager.
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
	if err := r.manager.Close(ctx); err != nil {
		text = err.Error()
	}
	r.driver.waitForCalls()
	<-r.watchDone
	r.recordHarness(history.Closed, text)
}

// sortedHistory is the record in the order of time: the sides write it down a moment after it happened, each in its own goroutine.
func (r *run) sortedHistory() *history.History {
	h := r.rec.History()
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return int(a.T - b.T) })
	for i := range h.Events {
		h.Events[i].Order = i + 1
	}
	return h
}

// releaseAll ends what the run has opened.
func (r *run) releaseAll() {
	for _, s := range r.servers {
		s.close()
	}
	r.children.close()
	r.descriptors.resetLimit()
	if r.folder != "" {
		_ = os.RemoveAll(r.folder)
	}
}
