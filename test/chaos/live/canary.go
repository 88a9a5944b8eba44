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

// canaryMark begins every canary, so that one search finds them all.
const canaryMark = "cAnArY-"

// secretScanner makes the secrets of a run, and reports where one of them appears although it must not.
type secretScanner struct {
	record func(history.Event)

	mu sync.Mutex
	// values are the secrets made so far.
	values []string
	// reported holds the places already reported: each is reported once, because one leak says as much as a thousand.
	reported map[string]bool
}

func newSecretScanner(record func(history.Event)) *secretScanner {
	return &secretScanner{record: record, reported: map[string]bool{}}
}

// newSecret makes a secret that no other run has.
func (c *secretScanner) newSecret() string {
	var b [12]byte
	// Read of crypto/rand never fails.
	_, _ = rand.Read(b[:])
	s := canaryMark + hex.EncodeToString(b[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = append(c.values, s)
	return s
}

// checkText checks a text that is made for people or kept in a file: it may hold neither secrets nor control characters. where
// names the text, server the server that it is about.
func (c *secretScanner) checkText(server, where, text string) {
	switch {
	case strings.Contains(text, canaryMark):
		c.reportLeak(server, where, "a secret stands in "+where)
	case messages.Printable(text) != text:
		c.reportLeak(server, where, "a control character stands in "+where)
	}
}

// checkForSecret checks a text that is passed on as the server sent it, where control characters are the server's own.
func (c *secretScanner) checkForSecret(server, where, text string) {
	if strings.Contains(text, canaryMark) {
		c.reportLeak(server, where, "a secret stands in "+where)
	}
}

// reportLeak records a leak, once for each place of each server.
func (c *secretScanner) reportLeak(server, where, text string) {
	c.mu.Lock()
	known := c.reported[server+"\x00"+where]
	c.reported[server+"\x00"+where] = true
	c.mu.Unlock()
	if !known {
		c.record(history.Event{Side: history.Harness, Kind: history.Canary, Server: server, Text: text})
	}
}

// checkStatus checks all texts of a status. The config is checked for secrets only, because it repeats the owner's own text.
func (c *secretScanner) checkStatus(st *messages.Status) {
	if st == nil {
		return
	}
	c.checkText(st.Name, "the status (error)", st.Error)
	c.checkText(st.Name, "the status (reason)", st.Reason)
	c.checkText(st.Name, "the status (standard error)", st.StderrTail)
	if st.Config != nil {
		// Marshal of a Spec cannot fail.
		b, _ := json.Marshal(st.Config)
		c.checkForSecret(st.Name, "the status (config)", string(b))
	}
	if st.Challenge != nil {
		c.checkText(st.Name, "the status (challenge)", st.Challenge.Text)
	}
}

// logObserver is a zap core that stores nothing: it checks each line of the manager's log for secrets and control characters.
type logObserver struct {
	zapcore.LevelEnabler
	encoder zapcore.Encoder
	scanner *secretScanner
	// Cores that are derived by With share the scanner and the count of lines.
	lines  *atomic.Int64
	record func(history.Event)
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

// Write implements zapcore.Core. The encoder escapes control characters, so the values are checked as a program decodes them.
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

// reportLine records the line in the history, and reports the leak.
func (o *logObserver) reportLine(e zapcore.Entry, line string) {
	line = strings.TrimSpace(line)
	o.record(history.Event{Side: history.Manager, Kind: history.Log, Text: e.Level.String() + " " + messages.Line(line, 300)})
	// The NUL makes checkText report in any case; the line may hold an escaped control character.
	o.scanner.checkText("", "the manager's log", line+"\x00")
}

// Sync implements zapcore.Core.
func (o *logObserver) Sync() error { return nil }
