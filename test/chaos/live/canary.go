package live

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// canaryMark is in every canary of every run: looking for it finds them all with one search.
const canaryMark = "cAnArY-"

// canaries are the secrets of a run, and what looks for them where they must not be.
type canaries struct {
	record func(history.Event)

	mu     sync.Mutex
	values []string
	told   map[string]bool // each place is told of once: one leak says as much as a thousand
}

func newCanaries(record func(history.Event)) *canaries {
	return &canaries{record: record, told: map[string]bool{}}
}

// secret makes another one.
func (c *canaries) secret() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	s := canaryMark + hex.EncodeToString(b[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = append(c.values, s)
	return s
}

// text looks at something that is made for people, or kept: where says what, server whose it is.
func (c *canaries) text(server, where, text string) {
	switch {
	case strings.Contains(text, canaryMark):
		c.tell(server, where, "a secret stands in "+where)
	case messages.Printable(text) != text:
		c.tell(server, where, "a control character stands in "+where)
	}
}

// secretIn looks only for secrets: in what is passed on as the server sent it.
func (c *canaries) secretIn(server, where, text string) {
	if strings.Contains(text, canaryMark) {
		c.tell(server, where, "a secret stands in "+where)
	}
}

func (c *canaries) tell(server, where, text string) {
	c.mu.Lock()
	known := c.told[server+"\x00"+where]
	c.told[server+"\x00"+where] = true
	c.mu.Unlock()
	if !known {
		c.record(history.Event{Side: history.Harness, Kind: history.Canary, Server: server, Text: text})
	}
}

// status looks at all of a status. Its texts are made for people, but for what the server says of itself.
func (c *canaries) status(st *messages.Status) {
	if st == nil {
		return
	}
	c.text(st.Name, "the status (error)", st.Error)
	c.text(st.Name, "the status (reason)", st.Reason)
	c.text(st.Name, "the status (standard error)", st.StderrTail)
	if st.Config != nil {
		b, _ := json.Marshal(st.Config) // a Spec always can be
		c.secretIn(st.Name, "the status (config)", string(b))
	}
	if st.Challenge != nil {
		c.text(st.Name, "the status (challenge)", st.Challenge.Text)
	}
}

// logObserver is the core of a logger that keeps nothing: it looks at each line for what must not be there.
type logObserver struct {
	zapcore.LevelEnabler
	encoder zapcore.Encoder
	canary  *canaries
	lines   *atomic.Int64
	record  func(history.Event)
}

func newLogObserver(c *canaries, record func(history.Event)) *logObserver {
	return &logObserver{zapcore.DebugLevel, zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}), c, &atomic.Int64{}, record}
}

// With implements zapcore.Core.
func (o *logObserver) With(fields []zapcore.Field) zapcore.Core {
	next := *o
	next.encoder = o.encoder.Clone()
	for _, f := range fields {
		f.AddTo(next.encoder)
	}
	return &next
}

// Check implements zapcore.Core.
func (o *logObserver) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return to.AddCore(e, o)
}

// Write implements zapcore.Core. The encoder writes a control character as an escape, so what is looked at is the line
// as a program decodes it.
func (o *logObserver) Write(e zapcore.Entry, fields []zapcore.Field) error {
	o.lines.Add(1)
	line, err := o.encoder.EncodeEntry(e, fields)
	if err != nil {
		return err
	}
	defer line.Free()
	text := line.String()
	var values map[string]any
	if json.Unmarshal([]byte(text), &values) == nil {
		for _, v := range values {
			if s, ok := v.(string); ok && messages.Printable(s) != s {
				o.suspicious(e, text)
				return nil
			}
		}
	}
	if strings.Contains(text, canaryMark) {
		o.suspicious(e, text)
	}
	return nil
}

func (o *logObserver) suspicious(e zapcore.Entry, line string) {
	line = strings.TrimSpace(line)
	o.record(history.Event{Side: history.Manager, Kind: history.Log, Text: e.Level.String() + " " + messages.Line(line, 300)})
	o.canary.text("", "the manager's log", line+"\x00") // the NUL: it is told whatever it was
}

// Sync implements zapcore.Core.
func (o *logObserver) Sync() error { return nil }
