package live

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/house"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
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

// closeTime bounds the manager's Close: half of it is for calls that are under way, the other half is more than a stop
// ladder of two rungs takes when all servers are ended together on a busy machine.
const closeTime = 20 * time.Second

// Run runs plan and returns what happened. An error means that the run could not be made; the history is that of what was
// until then, and may be nil. It is the only run of this process while it lasts, if descriptors and goroutines are to be
// counted rightly.
func Run(ctx context.Context, plan scenario.Plan, o Options) (*history.History, error) {
	known := map[int]bool{} // a guardian, and what else is not the run's
	for _, p := range house.Left(house.Options{}) {
		known[p.PID] = true
	}
	before := house.Count(house.Options{Known: known})
	r, err := newRun(plan, o)
	if err != nil {
		return nil, err
	}
	defer r.dissolve()
	r.known = known
	before.Heap = house.Heap()
	r.record(history.Event{Side: history.Harness, Kind: history.House, Text: "baseline", House: &before})
	r.beginFirst()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	busy := startLag()
	stop := r.report()
	r.drive(ctx)
	r.settle(ctx)
	r.finish()
	stop()
	r.clean(before, busy.end())
	return r.history(), nil
}

// run is one run while it lasts.
type run struct {
	plan  scenario.Plan
	o     Options
	began time.Time
	rec   *history.Recorder
	// leaving are calls that their callers give up at a moment that is still to come: *leaver by the call's id.
	leaving sync.Map

	lobby   *lobby
	limits  *limits
	known   map[int]bool // processes that were there before
	folder  string       // for the links of programs that shall vanish; empty if there are none
	seats   map[string]*seat
	secrets *canaries
	sums    hashes // of the goroutine that settles

	tokensMu sync.Mutex
	tokens   map[string]*token

	manager *supervisor.Manager
	watched chan struct{} // closed when the manager's events have been read to their end
	tally   tally
	driver  driver
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
	r := &run{plan: plan, o: o, began: time.Now(), seats: map[string]*seat{}, limits: &limits{}, sums: hashes{}, tokens: map[string]*token{}, watched: make(chan struct{})}
	r.rec = history.NewRecorder(plan, r.now)
	r.secrets = newCanaries(r.record)
	if r.lobby, err = openLobby(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // what a later step could not do takes the earlier ones with it
			r.dissolve()
		}
	}()
	if slices.ContainsFunc(plan.Faults, func(f scenario.Planned) bool { return f.Fault == missingBinary }) {
		if r.folder, err = os.MkdirTemp("", "mcpvisor-chaos-"); err != nil {
			return nil, &Error{Text: "no folder can be made for the run: " + err.Error(), Err: err}
		}
	}
	for _, srv := range plan.Servers {
		s, err := r.newSeat(srv)
		if err != nil {
			return nil, err
		}
		r.seats[srv.Name] = s
	}
	r.lobby.serve(r.seats)
	return r, nil
}

// now is how long the run has lasted. It is never 0, which would mean that the recorder shall take the time.
func (r *run) now() time.Duration { return max(time.Since(r.began), 1) }

func (r *run) record(e history.Event) {
	r.rec.Add(e)
	if e.Call != "" && e.Side == history.World {
		r.happened(&e)
	}
}

// harness records what the harness did.
func (r *run) harness(kind history.Kind, text string) {
	r.record(history.Event{Side: history.Harness, Kind: kind, Text: text})
}

// finish closes the manager.
func (r *run) finish() {
	r.statuses("at the end")
	r.scan()
	now := house.Count(house.Options{Heap: true, Known: r.known})
	r.record(history.Event{Side: history.Harness, Kind: history.House, Text: "before close", House: &now})
	r.driver.stop()
	r.tally.enter("closing")
	r.harness(history.Closing, "")
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	text := ""
	if err := r.manager.Close(ctx); err != nil {
		text = err.Error()
	}
	r.driver.wait()
	<-r.watched
	r.harness(history.Closed, text)
}

// history is the record in the order of time: the sides write it down a moment after it happened, each in its own goroutine.
func (r *run) history() *history.History {
	h := r.rec.History()
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return int(a.T - b.T) })
	for i := range h.Events {
		h.Events[i].Order = i + 1
	}
	return h
}

// dissolve ends what the run has opened.
func (r *run) dissolve() {
	for _, s := range r.seats {
		s.close()
	}
	r.lobby.close()
	r.limits.restoreAll()
	if r.folder != "" {
		_ = os.RemoveAll(r.folder)
	}
}
