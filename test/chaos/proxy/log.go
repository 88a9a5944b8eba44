package proxy

import (
	"encoding/json"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// Log writes one JSON object per line for everything that passes. It is safe for concurrent use; a nil Log writes nothing. It
// never sees HTTP headers, so that no credential in them can get into it.
type Log struct {
	mu     sync.Mutex
	w      io.Writer
	bodies bool
	begin  time.Time
	now    func() time.Time
	err    error
}

// NewLog makes a log. With bodies it holds whole messages, including secrets in arguments and results.
func NewLog(w io.Writer, bodies bool) *Log {
	return &Log{w: w, bodies: bodies, begin: time.Now(), now: time.Now}
}

// Err returns why the log could not be written, nil if it could. After the first error the log writes no more.
func (l *Log) Err() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Record is one line of the log.
type Record struct {
	// T is the time since the start of the proxy, in seconds.
	T float64 `json:"t"`
	// To is "server" or "client" for a message, and empty for an event by the clock.
	To     string `json:"to,omitempty"`
	Method string `json:"method,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// ID is the id of the request, as JSON.
	ID string `json:"id,omitempty"`
	// Kind is "request", "notification" or "answer". Failed is true if an answer is an error. Bytes is the length of the
	// message.
	Kind   string `json:"kind,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	// Faults are the faults that were done to the message.
	Faults []AppliedFault `json:"faults,omitempty"`
	// Status is the HTTP status of an answer without a message.
	// Body is the message, if the log holds bodies.
	Status int    `json:"status,omitempty"`
	Body   string `json:"body,omitempty"`
}

// AppliedFault is one fault that was done, by which rule, and what it did.
type AppliedFault struct {
	Rule  string `json:"rule"`
	Fault string `json:"fault"`
	Text  string `json:"text"`
}

// appliedFaults returns the faults of a message in the form of the log.
func appliedFaults(hits []fault.Hit) (out []AppliedFault) {
	for _, h := range hits {
		out = append(out, AppliedFault{h.Rule, h.Fault, h.Text})
	}
	return out
}

// logMessage logs one message. to is toServer or toClient.
func (l *Log) logMessage(to bool, m fault.MessageInfo, body []byte, hits []fault.Hit) {
	if l == nil {
		return
	}
	r := Record{Method: m.Method, Tool: m.Tool, ID: m.ID, Failed: m.Failed, Bytes: len(body), Faults: appliedFaults(hits)}
	r.To = "client"
	if to {
		r.To = "server"
	}
	switch {
	case m.Answer:
		r.Kind = "answer"
	case m.ID != "":
		r.Kind = "request"
	case m.Method != "":
		r.Kind = "notification"
	}
	if l.bodies {
		r.Body = string(body)
		if !utf8.ValidString(r.Body) {
			// Invalid UTF-8 is replaced by U+FFFD; Bytes keeps the true length.
			r.Body = string([]rune(r.Body))
		}
	}
	l.writeRecord(r)
}

// logEvent logs an event by the clock, or a fault on something that is no message.
func (l *Log) logEvent(method string, status int, hits ...fault.Hit) {
	if l == nil {
		return
	}
	l.writeRecord(Record{Method: method, Status: status, Faults: appliedFaults(hits)})
}

// writeRecord writes a line, unless an earlier one failed.
func (l *Log) writeRecord(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	r.T = float64(l.now().Sub(l.begin).Microseconds()) / 1e6
	b, err := json.Marshal(r)
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	l.err = err
}
