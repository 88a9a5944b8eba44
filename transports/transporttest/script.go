package transporttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Port is one end of a connection of a kind, as the scripted peer uses it. Script calls it from several goroutines at once. A
// method that cannot write any more returns an error, which Script ignores: the end of a connection is normal in these tests, and
// a message that is lost by mistake is missed at the other side.
type Port interface {
	// Write sends one whole message to the transport under test: on a stream, or as a part of the answer to the request that is
	// being played.
	Write(msg []byte) error
	// Push sends one whole message outside any answer. Kinds without it leave Features.Push false, and the suite never calls it.
	Push(msg []byte) error
	// Noise sends one line that is no JSON-RPC message. Kinds without it leave Features.Noise false.
	Noise(line []byte) error
	// Die ends the peer as a crash would, at once and without an answer. The messages written before must still be delivered.
	Die()
}

// Script is the memory and the commands of the scripted peer. The zero value is ready; it is safe for concurrent use. Every
// command is a JSON-RPC method:
//
//	echo          the result is params, byte for byte
//	seen          the result is the list of the ids of all requests that have arrived, and the methods of the rest
//	notify        {"n":N,"bytes":M}: N notifications "note" with params {"n":0} …, of M bytes at least, then the result
//	push          {"n":N}: the result, then, 10 ms later, N notifications outside any answer
//	big           {"bytes":N}: a response that is N bytes long as a whole message
//	noise         {"lines":[…]}: these lines, then the result
//	late          {"ms":N}: the result after N milliseconds
//	ask           a request "ask" with the same params, and when that is answered, the result that it was answered with
//	ask-push      the same, with the request outside any answer
//	silent        no answer, for ever; the end of the exchange, if there is one before, is remembered as "ended ID"
//	stall         {"ms":N}: the result, and then no reading for N milliseconds (Serve only; Play answers)
//	die           dies without an answer
//	last-words    {"n":N}: N notifications and the result, then dies
//
// Messages that are no requests (no id or no method) are remembered and get no answer.
type Script struct {
	// mu guards all fields.
	mu sync.Mutex
	// seen describes each message that has arrived, in the order of arrival.
	seen []string
	// answers are the results of responses by their ids; changed is closed when one is added, nil while no command waits.
	answers map[string]json.RawMessage
	changed chan struct{}
}

// Serve plays the peer on one stream: next returns one incoming message at a time, and an error at the end. Commands run
// concurrently, except stall, which holds up the reading. Serve returns when next fails; commands that still wait end with ctx.
func (s *Script) Serve(ctx context.Context, port Port, next func() ([]byte, error)) error {
	for {
		msg, err := next()
		if err != nil {
			return err
		}
		var e envelope
		// It is played in the reading goroutine, which then sleeps: nothing is read meanwhile.
		if json.Unmarshal(msg, &e) == nil && e.Method == "stall" {
			s.Play(ctx, port, msg)
			sleepMillis(ctx, paramsOf(e).MS)
			continue
		}
		msg = bytes.Clone(msg) // next may use its buffer again
		// Concurrent commands let answers overtake each other, as those of real servers do.
		go s.Play(ctx, port, msg)
	}
}

// Play plays one incoming message and returns when its answer has been written. The command silent ends with ctx.
func (s *Script) Play(ctx context.Context, port Port, msg []byte) {
	var e envelope
	if err := json.Unmarshal(msg, &e); err != nil {
		s.noteSeen("unreadable: " + err.Error())
		return
	}
	switch {
	// A notification, for example notifications/cancelled.
	case e.ID == nil:
		s.noteSeen(e.Method)
		return
	// A response to a request of the peer.
	case e.Method == "":
		s.noteSeen("response " + string(e.ID))
		// A command that has asked may wait for it.
		s.keepAnswer(string(e.ID), e.Result)
		return
	}
	s.noteSeen(string(e.ID))
	p := paramsOf(e)
	switch e.Method {
	case "echo":
		s.writeAnswer(port, e, e.Params)
	case "seen":
		b, _ := json.Marshal(s.Seen())
		s.writeAnswer(port, e, b)
	case "notify":
		s.writeNotes(port.Write, p.N, p.Bytes)
		s.writeAnswer(port, e, []byte(`{}`))
	case "push":
		s.writeAnswer(port, e, []byte(`{}`))
		// The pause lets the exchange of the request end, so that the notes have no answer to travel with.
		sleepMillis(ctx, 10)
		s.writeNotes(port.Push, p.N, p.Bytes)
	case "big":
		// The response as a whole message has Bytes bytes, because limits count the whole.
		// empty is the size of the response around the pad.
		empty := len(encodeResponse(e, []byte(`""`)))
		s.writeAnswer(port, e, []byte(`"`+strings.Repeat("x", max(0, p.Bytes-empty))+`"`))
	case "noise":
		for _, l := range p.Lines {
			_ = port.Noise([]byte(l)) // an error shows at the other side: the test misses the line there
		}
		s.writeAnswer(port, e, []byte(`{}`))
	case "late":
		sleepMillis(ctx, p.MS)
		s.writeAnswer(port, e, []byte(`{}`))
	case "stall":
		s.writeAnswer(port, e, []byte(`{}`))
	case "ask":
		s.askClient(ctx, port, e, port.Write)
	case "ask-push":
		s.askClient(ctx, port, e, port.Push)
	case "silent":
		// On a stream the context ends with the peer; over HTTP with the exchange, which the test looks for.
		<-ctx.Done()
		s.noteSeen("ended " + string(e.ID))
	case "die":
		port.Die()
	case "last-words":
		s.writeNotes(port.Write, p.N, p.Bytes)
		s.writeAnswer(port, e, []byte(`{}`))
		port.Die()
	default:
		// An unknown command is a mistake of the suite, and must not look like a silent peer.
		const answer = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such command"}}`
		_ = port.Write(fmt.Appendf(nil, answer, e.ID))
	}
}

// Seen returns the ids (or methods, or "response ID") of all messages that have arrived, in the order of arrival. It is the truth
// against which the suite holds each Delivery: a message that is in it was not NotWritten.
func (s *Script) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.seen...)
}

// noteSeen remembers one message.
func (s *Script) noteSeen(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

// writeAnswer writes a result. Its error is ignored: the connection may be ending, and the suite judges the other side.
func (s *Script) writeAnswer(port Port, e envelope, result []byte) {
	_ = port.Write(encodeResponse(e, result))
}

// writeNotes writes n notifications, each with a pad of that many bytes, and stops when a write fails.
func (s *Script) writeNotes(write func([]byte) error, n, bytes int) {
	// The pad makes the note at least that large.
	pad := strings.Repeat("p", bytes)
	for i := range n {
		if write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"note","params":{"n":%d,"pad":%q}}`, i, pad)) != nil {
			return
		}
	}
}

// askClient sends a request to the client with the params of e, waits for its response, and answers e with the result in that.
// The question comes while the request e is still open, as an elicitation does.
func (s *Script) askClient(ctx context.Context, port Port, e envelope, write func([]byte) error) {
	// The id is a string, so that it cannot be confused with one of the client's numbers.
	id := fmt.Sprintf("%q", "asked-"+string(e.ID))
	if write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"ask","params":%s}`, id, e.Params)) != nil {
		return
	}
	for {
		s.mu.Lock()
		result, ok := s.answers[id]
		// The channel is made under the same lock as the look at answers, so that no answer is missed.
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if ok {
			s.writeAnswer(port, e, result)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// keepAnswer keeps the result of a response and wakes the commands that wait for one.
func (s *Script) keepAnswer(id string, result json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string]json.RawMessage{}
	}
	s.answers[id] = result
	// Several commands may wait; each looks for its own answer again.
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// encodeResponse builds a response by hand, so that the result stays byte for byte as it is.
func encodeResponse(e envelope, result []byte) []byte {
	b := make([]byte, 0, len(result)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, e.ID...)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}

// commandParams are the params of all commands; each command reads its own.
type commandParams struct {
	N     int      `json:"n"`
	Bytes int      `json:"bytes"`
	MS    int      `json:"ms"`
	Lines []string `json:"lines"`
}

// paramsOf reads the params of a command. Params that do not fit give zeros.
func paramsOf(e envelope) commandParams {
	var p commandParams
	_ = json.Unmarshal(e.Params, &p) // echo accepts any params; the suite itself writes those of other commands
	return p
}

// sleepMillis waits, or returns early when ctx ends.
func sleepMillis(ctx context.Context, ms int) {
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
