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

// Recorder is a Sink that remembers every call. The zero value is ready. It is safe for concurrent use. It only records, so that
// its calls return at once, as the contract of Sink demands of every sink; the tests and Check judge afterwards. Each of its
// methods returns copies, which later events do not change.
type Recorder struct {
	// mu guards all fields.
	mu        sync.Mutex
	changed   chan struct{} // closed at every call; nil while no test waits
	messages  []recordedMessage
	oversized []OversizedMessage
	noise     []string
	down      []error
	afterDown []string             // names of the methods that were called after Down
	answers   map[int64][]envelope // responses by id, made by indexAnswers
	indexed   int                  // number of messages that are in answers
}

// recordedMessage is one call of Message.
type recordedMessage struct {
	body  []byte // the slice that the transport has given away
	value []byte // a copy of its content at that moment
}

// OversizedMessage has the arguments of one call of Sink.Oversized.
type OversizedMessage struct {
	Head, Tail []byte
	Size       int64
}

var _ transports.Sink = (*Recorder)(nil)

// Message implements transports.Sink. It keeps the slice and a copy of it, so that Check can find out whether the transport has
// written into memory that it had given away.
func (r *Recorder) Message(body []byte) {
	r.recordEvent("Message", func() {
		// The copy is made before the call returns, because the transport may write afterwards if it is wrong.
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

// recordEvent records one call, notes whether it came after Down, and wakes a waiting test.
func (r *Recorder) recordEvent(name string, record func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A second Down is recorded here as well; Check reports it first.
	if len(r.down) > 0 {
		r.afterDown = append(r.afterDown, name)
	}
	// The call is recorded even if it is forbidden, so that a failure can show it.
	record()
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Messages returns the messages that have arrived, in the order of arrival.
func (r *Recorder) Messages() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The slices are those of the transport, as a session would get them.
	out := make([][]byte, len(r.messages))
	for i, m := range r.messages {
		out[i] = m.body
	}
	return out
}

// OversizedMessages returns the calls of Oversized.
func (r *Recorder) OversizedMessages() []OversizedMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]OversizedMessage(nil), r.oversized...)
}

// NoiseLines returns the lines that Noise was called with.
func (r *Recorder) NoiseLines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.noise...)
}

// Downs returns every error that Down was called with; a correct transport gives at most one.
func (r *Recorder) Downs() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.down...)
}

// Check returns an error for behaviour that no correct transport shows: a second Down, any call after Down, a change of a body
// that the sink owns. It returns nil if none of it was seen until now.
func (r *Recorder) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.down) > 1 {
		return fmt.Errorf("Sink.Down was called %d times: %v", len(r.down), r.down)
	}
	if len(r.afterDown) > 0 {
		return fmt.Errorf("the sink was called after Down: %v", r.afterDown)
	}
	// A transport that reads into a buffer which it has given away shows here, often only under load.
	for i, m := range r.messages {
		if !bytes.Equal(m.body, m.value) {
			return fmt.Errorf("message %d was changed after the sink had got it: %.80q became %.80q", i, m.value, m.body)
		}
	}
	return nil
}

// Wait blocks until cond holds, and fails the test after bound. It calls cond again after every event, without the lock, so that
// cond may call the methods of the recorder.
func (r *Recorder) Wait(t testing.TB, bound time.Duration, what string, cond func() bool) {
	t.Helper()
	// One timer for the whole wait: events do not prolong it.
	timeout := time.NewTimer(bound)
	defer timeout.Stop()
	for {
		// The channel is fetched before cond is called: an event in between then wakes the select.
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

// Answer waits for the response to the request with that id and returns its raw result. A response with an error fails the test.
func (r *Recorder) Answer(t testing.TB, bound time.Duration, id int64) json.RawMessage {
	t.Helper()
	var got envelope
	r.Wait(t, bound, fmt.Sprintf("the answer to request %d", id), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		// The condition takes the lock itself, because Wait calls it without.
		all := r.indexAnswers()[id]
		if len(all) == 0 {
			return false
		}
		// A second answer is an error of its own, which Answers shows.
		got = all[0]
		return true
	})
	if got.Error != nil {
		t.Fatalf("request %d was answered with an error: %s", id, got.Error)
	}
	return got.Result
}

// Answers returns the number of responses to the request with that id; a correct connection delivers at most one.
func (r *Recorder) Answers(id int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.indexAnswers()[id])
}

// indexAnswers returns the responses by their ids. It decodes every message once. The caller holds mu.
func (r *Recorder) indexAnswers() map[int64][]envelope {
	if r.answers == nil {
		r.answers = map[int64][]envelope{}
	}
	for ; r.indexed < len(r.messages); r.indexed++ {
		var e envelope
		// Requests and notifications are no answers.
		if json.Unmarshal(r.messages[r.indexed].value, &e) != nil || e.Method != "" {
			continue
		}
		// The suite's own ids are numbers; other ids belong to the peer's requests.
		if id, err := strconv.ParseInt(string(e.ID), 10, 64); err == nil {
			r.answers[id] = append(r.answers[id], e)
		}
	}
	return r.answers
}

// envelope has the members of a JSON-RPC message that the suite reads.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}
