package hooks

import (
	"context"
	"sync"
	"time"
)

const (
	// maxWaiting and maxWaitingBytes bound the values that wait in a Stream. One value may be larger on its own.
	maxWaiting      = 256
	maxWaitingBytes = 256 << 10
	// streamGrace is how long a Stream may take to hand over what waits after the end of the context, or of the manager.
	streamGrace = 100 * time.Millisecond
)

// A Stream gives the values of one call to a function of the program, one after the other and in order, in a goroutine that is not the one
// that has them: the goroutine that has a value never waits for the function. While the function works, values wait. Of those that do not fit any more
// the newest takes the place of the newest that waits, so that the last value is never lost.
//
// Where 256 runs of the function are left for the server, the values are dropped: a call does not need them.
type Stream[T any] struct {
	runner *Runner
	ctx    context.Context //nolint:containedctx // it is that of the call, for the profiler's labels
	call   Call
	size   func(T) int
	f      func(T)

	// mu guards what follows. run is that of the goroutine that works, nil while none does; idle is closed when it has handed over all.
	mu      sync.Mutex
	waiting []T
	bytes   int
	run     *Run
	idle    chan struct{}
	ended   bool
}

// NewStream makes the stream of one call. size returns how many bytes of memory a value holds.
func NewStream[T any](ctx context.Context, r *Runner, c Call, size func(T) int, f func(T)) *Stream[T] {
	return &Stream[T]{runner: r, ctx: ctx, call: c, size: size, f: f}
}

// Put hands a value over, and does not wait. After Finish it does nothing.
func (s *Stream[T]) Put(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	last, n := len(s.waiting)-1, s.size(v)
	if last >= 0 && (last+1 >= maxWaiting || s.bytes+n > maxWaitingBytes) {
		s.bytes += n - s.size(s.waiting[last])
		s.waiting[last] = v
	} else {
		s.waiting = append(s.waiting, v)
		s.bytes += n
	}
	if s.run != nil {
		return
	}
	if s.runner.Begin(s.call) != nil {
		s.waiting, s.bytes = nil, 0
		return
	}
	run := &Run{}
	s.run = run
	s.runner.Start(func() { s.callForAll(run) })
}

// Finish waits until the function has got what waits, and returns. It leaves the function 0.1 s after the end of ctx or of over, whichever
// comes first, and after the longest time; nothing begins afterwards.
func (s *Stream[T]) Finish(ctx context.Context, over <-chan struct{}, longest time.Duration) {
	s.mu.Lock()
	if s.run == nil {
		s.ended = true
		s.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	s.idle = idle
	s.mu.Unlock()
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-ctx.Done():
		awaitGrace(idle, timer)
	case <-over:
		awaitGrace(idle, timer)
	}
	s.mu.Lock()
	s.ended, s.waiting, s.bytes = true, nil, 0
	run := s.run
	s.mu.Unlock()
	if run != nil {
		s.runner.Leave(run, s.call)
	}
}

// awaitGrace waits for idle for the grace.
func awaitGrace(idle <-chan struct{}, timer *time.Timer) {
	timer.Reset(streamGrace)
	select {
	case <-idle:
	case <-timer.C:
	}
}

// callForAll is the goroutine: it calls the function for what waits. One that ends its goroutine goes on in another.
func (s *Stream[T]) callForAll(run *Run) {
	SetLabels(s.ctx)
	hasReturned := false
	defer func() {
		if !hasReturned {
			s.runner.Start(func() { s.callForAll(run) })
		}
	}()
	for {
		v, ok := s.takeValue()
		if !ok {
			break
		}
		s.callOne(v)
	}
	s.runner.Return(run)
	hasReturned = true
}

// takeValue returns the oldest value that waits. With the last one the run is over.
func (s *Stream[T]) takeValue() (v T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.run, s.waiting = nil, nil
		if s.idle != nil {
			close(s.idle)
			s.idle = nil
		}
		return v, false
	}
	v = s.waiting[0]
	var none T
	s.waiting[0] = none // the array may live long, the value need not
	s.waiting = s.waiting[1:]
	s.bytes -= s.size(v)
	return v, true
}

// callOne calls the function. Its panic is logged, and costs no other value.
func (s *Stream[T]) callOne(v T) {
	hasReturned := false
	defer func() {
		if panicked := recover(); !hasReturned {
			_ = s.runner.Broke(s.call, panicked) // it logs the panic; a report has no caller that could get an error
		}
	}()
	s.f(v)
	hasReturned = true
}
