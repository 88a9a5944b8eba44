package hooks

import "sync"

// maxIdle bounds the goroutines that wait for the next function.
const maxIdle = 64

// workers are goroutines that run one function after the other: a new goroutine for each would have to grow its stack for each call.
type workers struct {
	// mu guards what follows.
	mu     sync.Mutex
	idle   []chan func() // the newest one last, which is taken first
	closed bool
	// ended counts the idle goroutines that endIdle ends.
	ended sync.WaitGroup
}

// startFunction runs f in a goroutine. It does not wait.
func (w *workers) startFunction(f func()) {
	w.mu.Lock()
	if n := len(w.idle) - 1; n >= 0 {
		next := w.idle[n]
		w.idle = w.idle[:n]
		w.mu.Unlock()
		next <- f // it has room
		return
	}
	w.mu.Unlock()
	go w.work(f)
}

// work is the goroutine: it runs f, and then what it gets while it is idle. It ends with a function that ends its goroutine, when enough
// others are idle, and with endIdle.
func (w *workers) work(f func()) {
	next := make(chan func(), 1)
	for f != nil {
		f()
		if !w.parkWorker(next) {
			return
		}
		if f = <-next; f == nil {
			w.ended.Done()
		}
	}
}

// parkWorker makes the goroutine that receives from next an idle one. It reports false if the goroutine is not needed any more.
func (w *workers) parkWorker(next chan func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.idle) >= maxIdle {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}

// endIdle ends the goroutines that are idle, and waits for them. Those that run end when their function does.
func (w *workers) endIdle() {
	w.mu.Lock()
	idle := w.idle
	w.idle, w.closed = nil, true
	w.mu.Unlock()
	w.ended.Add(len(idle))
	for _, next := range idle {
		close(next)
	}
	w.ended.Wait()
}
