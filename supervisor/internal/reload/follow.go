package reload

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/reload/plan"
)

const (
	// readEvery is the least time between two readings.
	readEvery = 20 * time.Millisecond
	// applyTime bounds one call of Apply.
	applyTime = 10 * time.Second
)

// Config is what is followed, and what is done about it.
type Config struct {
	// Reading is what is in force.
	Reading discover.Snapshot
	// Quiet, Most and Grace are those of plan.Rules. Poll is how often the files are read without an event; 5 s if zero.
	Quiet, Most, Grace, Poll time.Duration
	// Apply puts a decision in force. ctx has a bound of 10 s. An error is told, and the decision is made again a second later.
	Apply func(ctx context.Context, d plan.Decision) error
	// Decided, if set, is called after a decision that changed something, or of which there is something to say. It must not block.
	Decided func(d plan.Decision)
	// Done ends the following.
	Done <-chan struct{}
	// Log may be nil.
	Log *zap.Logger
}

// Follower follows files. Safe for concurrent use.
type Follower struct {
	cfg      Config
	requests chan readRequest
	stop     chan struct{}
	once     sync.Once
	ended    chan struct{}

	// What follows belongs to the goroutine.
	watch    *fileWatcher
	reading  discover.Snapshot
	approved []byte
	tracker  plan.Tracker
	lastRead time.Time
	readDue  bool // something happened since the last look
}

// readRequest is a wish to read the files now.
type readRequest struct{ reply chan<- readReply }

type readReply struct {
	d   plan.Decision
	err error
}

// Follow begins. The decision that follows from cfg.Reading is taken for what is in force; the caller has applied it, or calls
// Reload. Close the result.
func Follow(cfg Config) *Follower {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Poll == 0 {
		cfg.Poll = 5 * time.Second
	}
	f := &Follower{cfg: cfg, requests: make(chan readRequest), stop: make(chan struct{}), ended: make(chan struct{}), reading: cfg.Reading}
	f.approved = f.reading.ApprovalState()
	f.tracker = plan.New(plan.Rules{Quiet: cfg.Quiet, Most: cfg.Most, Grace: cfg.Grace, Parse: cfg.Reading.Parse,
		Context: cfg.Reading.Context, Fixed: cfg.Reading.Fixed}, cfg.Reading.Files, f.reading.HoldUnapproved)
	f.watch = newWatch(cfg.Log, cfg.Poll)
	f.watch.watchPaths(f.reading.WatchedPaths) // before Follow returns: what happens from here on is noticed
	f.readDue = true                           // and what has happened before
	go f.followLoop()
	return f
}

// Close ends the following and returns when nothing is applied any more. It is idempotent.
func (f *Follower) Close() {
	f.once.Do(func() { close(f.stop) })
	<-f.ended
}

// Reload reads the files now, without waiting for quiet, and returns when what follows is applied: how it differs from what was
// in force, and what is wrong with the files. A file that is missing keeps its Grace.
func (f *Follower) Reload(ctx context.Context) (plan.Decision, error) {
	reply := make(chan readReply, 1)
	select {
	case f.requests <- readRequest{reply}:
	case <-f.ended:
		return plan.Decision{}, closedError()
	case <-ctx.Done():
		return plan.Decision{}, contextError(ctx)
	}
	select {
	case a := <-reply:
		return a.d, a.err
	case <-f.ended:
		select {
		case a := <-reply:
			return a.d, a.err
		default:
			return plan.Decision{}, closedError()
		}
	case <-ctx.Done():
		return plan.Decision{}, contextError(ctx)
	}
}

func closedError() error {
	return &messages.Error{Op: "reload", Class: messages.ClassCanceled, Text: "the files are not followed any more",
		Err: messages.ErrClosed}
}

func contextError(ctx context.Context) error {
	return &messages.Error{Op: "reload", Class: messages.ClassOf(ctx.Err()), Text: "the context ended first",
		Fix: "it goes on in the background", Err: ctx.Err()}
}

// followLoop is the goroutine that owns everything.
func (f *Follower) followLoop() {
	defer close(f.ended)
	defer f.watch.close()
	defer func() {
		if p := recover(); p != nil {
			f.cfg.Log.Error("panic while configuration files were followed; they are not followed any more", zap.Any("panic", p),
				zap.ByteString("stack", debug.Stack()))
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	polled := time.NewTicker(f.cfg.Poll)
	defer polled.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-f.cfg.Done:
			return
		case e := <-f.watch.events():
			f.readDue = f.readDue || f.watch.isRelevant(e)
		case err := <-f.watch.errors(): // what was lost is read
			f.cfg.Log.Debug("the watcher of configuration files has lost something", zap.Error(err))
			f.readDue = true
		case <-polled.C:
			f.readDue = true
		case <-timer.C:
		case a := <-f.requests:
			f.readFiles()
			f.tracker = f.tracker.ReportBroken()
			d, err := f.decideAndApply()
			a.reply <- readReply{d, err}
		}
		f.runDue(timer)
	}
}

// runDue does what is due, and arms the timer for what comes next.
func (f *Follower) runDue(timer *time.Timer) {
	if f.readDue && time.Since(f.lastRead) >= readEvery {
		f.readFiles()
	}
	if at, due := f.tracker.Due(); due && !time.Now().Before(at) {
		f.readFiles() // the newest content counts
		if at, due = f.tracker.Due(); due && !time.Now().Before(at) {
			_, _ = f.decideAndApply() // what went wrong is in the log, and is tried again
		}
	}
	wait := time.Hour
	if at, due := f.tracker.Due(); due {
		wait = time.Until(at)
	}
	if f.readDue {
		wait = min(wait, time.Until(f.lastRead.Add(readEvery)))
	}
	timer.Reset(max(wait, 0))
}

// readFiles reads the files.
func (f *Follower) readFiles() {
	f.readDue = false
	f.reading = f.reading.Reread()
	f.lastRead = time.Now()
	f.tracker, _ = f.tracker.Observe(f.lastRead, f.reading.Files)
	if approved := f.reading.ApprovalState(); !bytes.Equal(approved, f.approved) {
		f.approved = approved
		f.tracker = f.tracker.NoteChange(f.lastRead)
	}
	// A folder that appeared is watched from here on, and may have got its file since it was read.
	f.readDue = f.watch.watchPaths(f.reading.WatchedPaths)
}

// decideAndApply applies what follows.
func (f *Follower) decideAndApply() (plan.Decision, error) {
	before := f.tracker.Last()
	book, d := f.tracker.Decide(time.Now(), f.reading.HoldUnapproved)
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	if err := f.callApply(ctx, d); err != nil {
		f.cfg.Log.Warn("changed configuration files could not be applied", zap.Error(err))
		f.tracker = f.tracker.NoteChange(time.Now().Add(time.Second))
		return d, err
	}
	if f.tracker = book; f.cfg.Decided != nil && !d.Quiet(before) {
		f.cfg.Decided(d)
	}
	return d, nil
}

// callApply calls Apply. A panic in it is an error.
func (f *Follower) callApply(ctx context.Context, d plan.Decision) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &messages.Error{Op: "reload", Class: messages.ClassPanic, Text: "a defect: " + messages.Line(fmt.Sprint(p), 200)}
		}
	}()
	return f.cfg.Apply(ctx, d)
}
