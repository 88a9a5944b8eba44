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

// secretScanner are the secrets of a run, and what looks for them where they must not be.
type secretScanner struct {
	record func(history.Event)

	mu       sync.Mutex
	values   []string
	reported map[string]bool // each place is told of once: one leak says as much as a thousand
}

func newSecretScanner(record func(history.Event)) *secretScanner {
	return &secretScanner{record: record, reported: map[string]bool{}}
}

// newSecret makes another one.
func (c *secretScanner) newSecret() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	s := canaryMark + hex.EncodeToString(b[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = append(c.values, s)
	return s
}

// checkText looks at something that is made for people, or kept: where says what, server whose it is.
func (c *secretScanner) checkText(server, where, text string) {
	switch {
	case strings.Contains(text, canaryMark):
		c.reportLeak(server, where, "a secret stands in "+where)
	case messages.Printable(text) != text:
		c.reportLeak(server, where, "a control character stands in "+where)
	}
}

// checkForSecret looks only for secrets: in what is passed on as the server sent it.
func (c *secretScanner) checkForSecret(server, where, text string) {
	if strings.Contains(text, canaryMark) {
		c.reportLeak(server, where, "a secret stands in "+where)
	}
}

func (c *secretScanner) reportLeak(server, where, text string) {
	c.mu.Lock()
	known := c.reported[server+"\x00"+where]
	c.reported[server+"\x00"+where] = true
	c.mu.Unlock()
	if !known {
		c.record(history.Event{Side: history.Harness, Kind: history.Canary, Server: server, Text: text})
	}
}

// checkStatus looks at all of a status. Its texts are made for people, but for what the server says of itself.
func (c *secretScanner) checkStatus(st *messages.Status) {
	if st == nil {
		return
	}
	c.checkText(st.Name, "the status (error)", st.Error)
	c.checkText(st.Name, "the status (reason)", st.Reason)
	c.checkText(st.Name, "the status (standard error)", st.StderrTail)
	if st.Config != nil {
		b, _ := json.Marshal(st.Config) // a Spec always can be
		c.checkForSecret(st.Name, "the status (config)", string(b))
	}
	if st.Challenge != nil {
		c.checkText(st.Name, "the status (challenge)", st.Challenge.Text)
	}
}

// logObserver is the core of a logger that keeps nothing: it looks at each line for what must not be there.
type logObserver struct {
	zapcore.LevelEnabler
	encoder zapcore.Encoder
	scanner *secretScanner
	lines   *atomic.Int64
	record  func(history.Event)
}

func newLogObserver(c *secretScanner, record func(history.Event)) *logObserver {
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
				o.reportLine(e, text)
				return nil
			}
		}
	}
	if strings.Contains(text, canaryMark) {
		o.reportLine(e, text)
	}
	return nil
}

func (o *logObserver) reportLine(e zapcore.Entry, line string) {
	line = strings.TrimSpace(line)
	o.record(history.Event{Side: history.Manager, Kind: history.Log, Text: e.Level.String() + " " + messages.Line(line, 300)})
	o.scanner.checkText("", "the manager's log", line+"\x00") // the NUL: it is told whatever it was
}

// Sync implements zapcore.Core.
func (o *logObserver) Sync() error { return nil }
