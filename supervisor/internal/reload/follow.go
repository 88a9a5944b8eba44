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
	// readEvery is the least time between two readings, so that a storm of events does not keep the disk busy.
	readEvery = 20 * time.Millisecond
	// applyTime bounds one call of Apply; after it the decision is tried again.
	applyTime = 10 * time.Second
)

// Config says what is followed, and what is done with changes.
type Config struct {
	// Reading is the configuration that is in force.
	Reading discover.Snapshot
	// Quiet, Most and Grace are those of plan.Rules. Poll is how often the files are read without an event; 5 s if zero.
	Quiet, Most, Grace, Poll time.Duration
	// Apply puts a decision in force. ctx ends after 10 s. An error is logged, and the decision is made again a second later.
	Apply func(ctx context.Context, d plan.Decision) error
	// Decided, if set, is called after a decision that changed something or has something to report. It must not block.
	Decided func(d plan.Decision)
	// Done, when it is closed, ends the following.
	Done <-chan struct{}
	// Log may be nil.
	Log *zap.Logger
}

// Follower follows files until Close. Its methods are safe for concurrent use.
type Follower struct {
	// requests has no buffer: followLoop takes one at a time. ended is closed when followLoop has returned.
	cfg      Config
	requests chan readRequest
	stop     chan struct{}
	once     sync.Once
	ended    chan struct{}

	// The fields below belong to followLoop; Follow sets them before it starts.
	watch    *fileWatcher
	reading  discover.Snapshot
	approved []byte
	tracker  plan.Tracker
	lastRead time.Time
	readDue  bool // the files may have changed since they were last read
}

// readRequest asks followLoop to read the files now.
type readRequest struct{ reply chan<- readReply }

// readReply is the decision that followed, or why it could not be applied.
type readReply struct {
	d   plan.Decision
	err error
}

// Follow begins to follow. It assumes that the caller has applied the decision that follows from cfg.Reading, or calls Reload. The
// caller closes the result.
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
		Context: cfg.Reading.Context, Fixed: cfg.Reading.Fixed, Omit: cfg.Reading.Omit}, cfg.Reading.Files, f.reading.HoldUnapproved)
	f.watch = newWatch(cfg.Log, cfg.Poll)
	// The folders are watched before Follow returns, so that later changes are noticed.
	f.watch.watchPaths(f.reading.WatchedPaths)
	f.readDue = true // and earlier ones are read
	go f.followLoop()
	return f
}

// Close ends the following and returns when Apply runs no more. It is idempotent.
func (f *Follower) Close() {
	f.once.Do(func() { close(f.stop) })
	<-f.ended
}

// Reload reads the files now, without waiting for quiet, and returns when the decision is applied: what it changes, and
// what is wrong with the files. A missing file still has its Grace.
func (f *Follower) Reload(ctx context.Context) (plan.Decision, error) {
	// The loop never waits for a caller that has gone.
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
	// The loop may have replied and ended at the same time.
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

// followLoop is the goroutine that owns the tracker and the watcher. Every case is followed by runDue.
func (f *Follower) followLoop() {
	defer close(f.ended)
	defer f.watch.close()
	defer func() {
		if p := recover(); p != nil {
			f.cfg.Log.Error("panic while configuration files were followed; they are not followed any more", zap.Any("panic", p),
				zap.ByteString("stack", debug.Stack()))
		}
	}()
	// The timer fires at once, so that the first reading needs no event.
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
		case err := <-f.watch.errors(): // lost events are made up for by a reading
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

// runDue reads and decides what is due, and arms the timer for the next time.
func (f *Follower) runDue(timer *time.Timer) {
	if f.readDue && time.Since(f.lastRead) >= readEvery {
		f.readFiles()
	}
	if at, due := f.tracker.Due(); due && !time.Now().Before(at) {
		f.readFiles() // the newest content counts
		if at, due = f.tracker.Due(); due && !time.Now().Before(at) {
			// The error is in the log, and the decision is tried again.
			_, _ = f.decideAndApply()
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

// readFiles reads the files and hands them to the tracker. Approvals stand in no followed file, so they are compared apart.
func (f *Follower) readFiles() {
	f.readDue = false
	f.reading = f.reading.Reread()
	f.lastRead = time.Now()
	// The tracker notices what differs; equal contents change nothing.
	f.tracker, _ = f.tracker.Observe(f.lastRead, f.reading.Files)
	if approved := f.reading.ApprovalState(); !bytes.Equal(approved, f.approved) {
		f.approved = approved
		f.tracker = f.tracker.NoteChange(f.lastRead)
	}
	// A folder that has just appeared is watched from here on, and may have got its file before: it is read once more.
	f.readDue = f.watch.watchPaths(f.reading.WatchedPaths)
}

// decideAndApply makes a decision and applies it. If that fails the tracker stays as it was, and the change counts as new in a
// second.
func (f *Follower) decideAndApply() (plan.Decision, error) {
	before := f.tracker.Last()
	// Decide returns the successor, which replaces the tracker only when the decision is in force.
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

// callApply calls Apply; a panic in it counts as an error, so that the files are still followed.
func (f *Follower) callApply(ctx context.Context, d plan.Decision) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &messages.Error{Op: "reload", Class: messages.ClassPanic, Text: "a defect: " + messages.Line(fmt.Sprint(p), 200)}
		}
	}()
	return f.cfg.Apply(ctx, d)
}
