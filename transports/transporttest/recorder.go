package transporttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
)

// Recorder is a Sink that remembers everything it was told. The zero value is ready. It is safe for concurrent use.
type Recorder struct {
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at every event; nil until somebody waits
	messages  []recordedMessage
	oversized []OversizedMessage
	noise     []string
	down      []error
	afterDown []string // what was called after Down
	answers   map[int64][]envelope
	indexed   int // how many messages are in answers
}

type recordedMessage struct {
	body  []byte // the slice that the transport gave away
	value []byte // what was in it then
}

// OversizedMessage is what Sink.Oversized was told.
type OversizedMessage struct {
	Head, Tail []byte
	Size       int64
}

var _ transports.Sink = (*Recorder)(nil)

// Message implements transports.Sink. The slice is kept, and a copy of it, so that Check can tell whether the transport
// wrote into memory that it had given away.
func (r *Recorder) Message(body []byte) {
	r.recordEvent("Message", func() {
		r.messages = append(r.messages, recordedMessage{body: body, value: bytes.Clone(body)})
	})
}

// Oversized implements transports.Sink.
func (r *Recorder) Oversized(head, tail []byte, size int64) {
	r.recordEvent("Oversized", func() {
		r.oversized = append(r.oversized, OversizedMessage{Head: bytes.Clone(head), Tail: bytes.Clone(tail), Size: size})
	})
}

// Noise implements transports.Sink.
func (r *Recorder) Noise(line []byte) {
	r.recordEvent("Noise", func() { r.noise = append(r.noise, string(line)) })
}

// Down implements transports.Sink.
func (r *Recorder) Down(err error) {
	r.recordEvent("Down", func() { r.down = append(r.down, err) })
}

func (r *Recorder) recordEvent(name string, record func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.down) > 0 {
		r.afterDown = append(r.afterDown, name)
	}
	record()
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Messages is what arrived until now, in the order of arrival.
func (r *Recorder) Messages() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([][]byte, len(r.messages))
	for i, m := range r.messages {
		out[i] = m.body
	}
	return out
}

// OversizedMessages is what Oversized was told until now.
func (r *Recorder) OversizedMessages() []OversizedMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]OversizedMessage(nil), r.oversized...)
}

// NoiseLines is what Noise was told until now.
func (r *Recorder) NoiseLines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.noise...)
}

// Downs is every error that Down was called with; a correct transport gives at most one.
func (r *Recorder) Downs() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.down...)
}

// Check is what a correct transport can never do: a second Down, anything after Down, a change of a body that the sink
// owns. It returns nil if none of it was seen until now.
func (r *Recorder) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.down) > 1 {
		return fmt.Errorf("Sink.Down was called %d times: %v", len(r.down), r.down)
	}
	if len(r.afterDown) > 0 {
		return fmt.Errorf("the sink was called after Down: %v", r.afterDown)
	}
	for i, m := range r.messages {
		if !bytes.Equal(m.body, m.value) {
			return fmt.Errorf("message %d was changed after the sink had got it: %.80q became %.80q", i, m.value, m.body)
		}
	}
	return nil
}

// Wait blocks until cond holds, which is asked again after every event, and fails the test after bound. cond may call
// the methods of the recorder.
func (r *Recorder) Wait(t testing.TB, bound time.Duration, what string, cond func() bool) {
	t.Helper()
	timeout := time.NewTimer(bound)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("%s: not seen within %v (%d messages, %d oversized, %d noise, down %v)", what, bound,
				len(r.Messages()), len(r.OversizedMessages()), len(r.NoiseLines()), r.Downs())
		}
	}
}

// Answer waits for the response to the request with that id and returns the raw result. A response with an error fails
// the test.
func (r *Recorder) Answer(t testing.TB, bound time.Duration, id int64) json.RawMessage {
	t.Helper()
	var got envelope
	r.Wait(t, bound, fmt.Sprintf("the answer to request %d", id), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		all := r.indexAnswers()[id]
		if len(all) == 0 {
			return false
		}
		got = all[0]
		return true
	})
	if got.Error != nil {
		t.Fatalf("request %d was answered with an error: %s", id, got.Error)
	}
	return got.Result
}

// Answers counts the responses to the request with that id.
func (r *Recorder) Answers(id int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.indexAnswers()[id])
}

// indexAnswers gives the responses by their ids. Every message is decoded once. The lock is held.
func (r *Recorder) indexAnswers() map[int64][]envelope {
	if r.answers == nil {
		r.answers = map[int64][]envelope{}
	}
	for ; r.indexed < len(r.messages); r.indexed++ {
		var e envelope
		if json.Unmarshal(r.messages[r.indexed].value, &e) != nil || e.Method != "" {
			continue
		}
		if id, err := strconv.ParseInt(string(e.ID), 10, 64); err == nil {
			r.answers[id] = append(r.answers[id], e)
		}
	}
	return r.answers
}

// envelope is a JSON-RPC message as far as the suite reads it.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}
