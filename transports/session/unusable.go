package session

import (
	"fmt"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// Oversized ends the call whose answer exceeded the transport's limit, with an error that says that the tool ran. head and
// tail are the first and last bytes of the message, size its length in bytes.
func (k *sink) Oversized(head, tail []byte, size int64) {
	(*Session)(k).failDiscarded(head, tail, outcome.Answer{
		Kind:    outcome.AnswerUnusable,
		Detail:  fmt.Sprintf("is larger than the limit and was discarded (%d bytes)", size),
		ToolRan: true,
	})
}

// Discarded ends the call whose answer found no room in the server's share of the memory.
func (k *sink) Discarded(head, tail []byte, size int64) {
	(*Session)(k).failDiscarded(head, tail, outcome.Answer{
		Kind:    outcome.AnswerNoMemory,
		Detail:  fmt.Sprintf("was discarded (%d bytes), because the server holds its share of the memory for all servers", size),
		ToolRan: true,
	})
}

// failDiscarded ends, with the answer a, the call that a discarded message belongs to, as far as head and tail show it.
func (s *Session) failDiscarded(head, tail []byte, a outcome.Answer) {
	defer s.recoverPanic()
	s.counts.oversized.Add(1)
	id, certain := jsonrpc.FindAnsweredID(head, tail)
	f, ok := s.takePending(id)
	if !ok && !certain {
		// The fragments name no request. If only one request is pending, the message was its answer.
		f, ok = s.takeOnlyPending()
	}
	if ok {
		f.answer <- a
		return
	}
	s.chargeUnasked(noticePrice, len(head)+len(tail))
}

// handleInvalidJSON treats a message that is not valid JSON. If the bytes show which request it was meant to answer, that
// call ends now and not at its deadline: Python, for one, writes NaN into JSON.
func (s *Session) handleInvalidJSON(body []byte) {
	if id, certain := jsonrpc.FindAnsweredID(body, body); certain {
		if f, ok := s.takePending(id); ok {
			f.answer <- outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "is not valid JSON"}
		}
	}
	s.countNoise(body)
}

// Noise counts a line that cannot be JSON-RPC, such as a log line on standard output.
func (k *sink) Noise(line []byte) {
	s := (*Session)(k)
	defer s.recoverPanic()
	s.countNoise(line)
}

// countNoise counts a piece of input that is not JSON-RPC, and ends the session if there are more than Config.NoiseLimit in a
// second.
func (s *Session) countNoise(line []byte) {
	s.chargeUnasked(noticePrice, len(line))
	if s.noise.Load() == nil {
		s.noise.CompareAndSwap(nil, new(noiseCounter)) // two readers may race for the first line
	}
	if !s.noise.Load().countLine(line, s.cfg.NoiseLimit, time.Now()) {
		return
	}
	s.failSession(&messages.Error{
		Class: messages.ClassProtocol,
		Text: "the server wrote more than " + strconv.Itoa(s.cfg.NoiseLimit) +
			" lines in a second that are no JSON-RPC messages",
		Fix: "make the server log to standard error instead of standard output",
	})
}
