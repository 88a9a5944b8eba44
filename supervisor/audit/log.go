package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The bounds of the queue, where the options have none.
const (
	DefaultMaxRecords = 1 << 16
	DefaultMaxBytes   = 32 << 20
)

// Options say how records are kept. The zero value works.
type Options struct {
	// Arguments says in which form the arguments of calls are recorded; Hash if empty.
	Arguments Arguments
	// MaxRecords and MaxBytes bound the queue. 65,536 and 32 MiB if 0: some seconds of everything that a busy
	// program calls. The memory is in use only while the writer does not keep up.
	MaxRecords, MaxBytes int
	// Logger gets one line when the writer begins to fail, and one when it works again; nil logs nothing.
	Logger *zap.Logger
}

// Log queues records for a writer. Safe for concurrent use.
type Log struct {
	// Only writeLoop calls writer.
	writer io.Writer
	opts   Options
	run    string

	wake       chan struct{} // capacity 1: the queue is not empty
	flushAsked chan struct{} // capacity 1: Flush waits, so the goroutine need not gather
	closing    chan struct{} // closed by Close
	done       chan struct{} // closed when the writer's goroutine has ended

	// mu guards all fields below. It is never held while the writer is called.
	mu          sync.Mutex
	queue       []byte // whole lines
	spareBuffer []byte // an empty buffer for the next queue, so that two alternate
	queued      int    // records in queue
	// takenRecords and takenBytes count what the goroutine has taken from the queue and not written or given up yet.
	takenRecords, takenBytes int
	// seq is the number of the newest record, lost ones included.
	seq uint64
	// accepted counts the records that were queued, settled those of them that are written or given up.
	accepted, settled uint64
	stats             Stats
	// gap describes the newest lost records, for which no record of kind lost was queued yet; nil if there are none.
	gap    *Lost
	closed bool
	change chan struct{} // closed and replaced when records are settled; nil while no goroutine waits
}

// Stats count records. Added is the sum of Written, Waiting and Lost. A record of kind lost counts as any other.
type Stats struct {
	Added   uint64 `json:"added"`
	Written uint64 `json:"written"`
	Waiting uint64 `json:"waiting"`
	Lost    uint64 `json:"lost"`
	// Kinds has the lost ones by their kind.
	Kinds map[Kind]uint64 `json:"lostKinds,omitempty"`
	// Failing is the writer's error while it fails, in one line, Since when the failing began.
	Failing string    `json:"failing,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// New makes a log that writes to w from a goroutine of its own, which ends with Close. The caller closes w afterwards.
func New(w io.Writer, o Options) *Log {
	if o.Arguments == "" {
		o.Arguments = Hash
	}
	if o.MaxRecords <= 0 {
		o.MaxRecords = DefaultMaxRecords
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	// The id of the run is random, so that runs of different machines can be distinguished in one collected log.
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	// The channels of signals have room for one: a signal that is not taken yet stands for all later ones.
	l := &Log{writer: w, opts: o, run: hex.EncodeToString(id[:]), wake: make(chan struct{}, 1), flushAsked: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{})}
	go l.writeLoop()
	return l
}

// Arguments returns the form in which the arguments of calls are recorded.
func (l *Log) Arguments() Arguments { return l.opts.Arguments }

// Add queues r, or counts it as lost. It sets Version, Run and Seq, and Time if it is zero. It never blocks. A nil Log
// records nothing.
func (l *Log) Add(r Record) {
	if l == nil {
		return
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Run = l.run
	// The buffer's memory is reused: a record costs a copy into the queue and no allocation.
	p := recordBuffers.Get().(*recordBuffer)
	defer p.release()
	// The record is encoded before the lock is taken, so that concurrent calls encode beside one another.
	p.line = appendRecord(p.line[:0], &r)
	line := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	// A lost record gets its number too, so that a reader sees the gap.
	if l.closed || !l.hasRoom(r.Kind, len(line)) || l.gap != nil && !l.queueGap(len(line)) {
		l.seq++
		l.stats.Added++
		l.countLost(r.Kind, r.Time)
		return
	}
	l.queueLine(line)
}

// hasRoom reports whether a record fits into the queue. Frequent kinds get seven eighths of it. The caller holds mu.
func (l *Log) hasRoom(kind Kind, size int) bool {
	// What the goroutine has taken counts until it is written: it is in memory as well.
	records, bytes := l.opts.MaxRecords, l.opts.MaxBytes
	if kind == KindCall || kind == KindRead || kind == KindPrompt || kind == KindPhase {
		records, bytes = records-records/8, bytes-bytes/8
	}
	return l.queued+l.takenRecords < records && len(l.queue)+l.takenBytes+size+numberSize <= bytes
}

// queueLine queues an encoded record under the next number. The caller holds mu.
func (l *Log) queueLine(line []byte) {
	l.seq++
	l.stats.Added++
	l.accepted++
	l.queue = appendNumbered(l.queue, line, l.seq)
	l.queued++
	signal(l.wake)
}

// countLost counts the record with the newest number as lost, and extends the gap. The caller holds mu.
func (l *Log) countLost(kind Kind, at time.Time) {
	l.stats.Lost++
	if l.stats.Kinds == nil {
		l.stats.Kinds = map[Kind]uint64{}
	}
	l.stats.Kinds[kind]++
	// The gap is written to the log, where a monotonic reading means nothing.
	at = at.UTC().Round(0)
	if l.gap == nil {
		l.gap = &Lost{From: l.seq, Since: at, Until: at, Kinds: map[Kind]uint64{}}
	}
	// Records get their numbers in another order than they happened.
	// The times of the gap are those of the earliest and the latest record in it.
	if at.Before(l.gap.Since) {
		l.gap.Since = at
	}
	if at.After(l.gap.Until) {
		l.gap.Until = at
	}
	// The reason of the loss is the writer's error, if it fails at the moment.
	if l.stats.Failing != "" {
		l.gap.Why = l.stats.Failing
	}
	l.gap.Records++
	l.gap.Kinds[kind]++
	l.gap.To = l.seq
}

// queueGap queues the record that describes the gap, if it and another record of this size fit: otherwise the next record would be
// lost at once and begin a new gap. The caller holds mu.
func (l *Log) queueGap(size int) bool {
	// The gap's own record needs a place, and the record that follows it another.
	line := appendRecord(nil, &Record{Time: time.Now(), Kind: KindLost, Run: l.run, Lost: l.gap})
	if l.queued+l.takenRecords+1 >= l.opts.MaxRecords ||
		len(l.queue)+l.takenBytes+len(line)+size+2*numberSize > l.opts.MaxBytes {
		return false
	}
	l.gap = nil
	l.queueLine(line)
	return true
}

// Stats returns the counts so far; zero for a nil Log.
func (l *Log) Stats() Stats {
	if l == nil {
		return Stats{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The copy shares nothing with the log, since Kinds is cloned.
	s := l.stats
	s.Waiting = uint64(l.queued + l.takenRecords) //nolint:gosec // counts
	s.Kinds = maps.Clone(s.Kinds)
	return s
}

// Flush returns when all records that were added before are written, or lost with a record that says so, or with ctx's error.
func (l *Log) Flush(ctx context.Context) error {
	l.mu.Lock()
	// Records that are added later need not be waited for.
	want, gap := l.accepted, l.gap != nil
	l.mu.Unlock()
	// Both signals are repeated, because the goroutine may have consumed them for an earlier batch.
	for {
		l.mu.Lock()
		if gap && l.gap == nil {
			// The line that reports the gap was queued after the records, and is waited for as well.
			want, gap = l.accepted, false
		}
		if !gap && l.settled >= want {
			l.mu.Unlock()
			return nil
		}
		if l.change == nil {
			l.change = make(chan struct{})
		}
		change := l.change
		l.mu.Unlock()
		signal(l.flushAsked)
		signal(l.wake)
		select {
		case <-change:
		case <-l.done:
			return l.unwrittenError(nil)
		case <-ctx.Done():
			return l.unwrittenError(ctx.Err())
		}
	}
}

// Close tries once more to write what is queued, and ends the log: records that are added from now on are lost. The error says that
// records are not written and that no line reports it; nil if there are none. If ctx ends first, because the writer does not
// return, the goroutine ends when the writer does. It is idempotent.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	// The goroutine notices the closed channel after its present batch.
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
		return l.unwrittenError(nil)
	case <-ctx.Done():
	}
	select {
	case <-l.done:
		return l.unwrittenError(nil)
	default:
	}
	return l.unwrittenError(ctx.Err())
}

// unwrittenError returns the error for records that are not in the file and will not be written; nil if there are none.
func (l *Log) unwrittenError(cause error) error {
	s := l.Stats()
	l.mu.Lock()
	// A gap that no line reports is a silent loss, which Close must report.
	gapTold := l.gap == nil
	l.mu.Unlock()
	if s.Waiting == 0 && gapTold {
		return nil
	}
	// The text has the numbers, because the program may only log it.
	text := "records are not written: " + formatCount(s.Waiting) + " wait, " + formatCount(s.Lost) + " are lost"
	if s.Failing != "" {
		text += "; the writer says: " + s.Failing
	}
	return &messages.Error{Op: "audit", Class: messages.ClassOf(cause), Text: text, Err: cause}
}

// signal fills a channel of capacity 1, unless it is full already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
