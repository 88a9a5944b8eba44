package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// secretScanner looks for canaries, and for characters that act on a terminal, in everything that the manager shows.
type secretScanner struct {
	// canaries maps the canary of each server to whether its appearance is a leak. It is filled before the manager starts.
	canaries map[string]bool

	mu sync.Mutex
	// reported holds the findings so far, so that a server that repeats itself is one finding.
	reported map[string]bool
}

// canaryOf returns the secret of a server, derived from the seed so that a run repeats.
func canaryOf(seed uint64, server string) string {
	return fmt.Sprintf("canary-%016x", seedOf(fmt.Sprint(seed), "canary", server))
}

// A canary is canaryWord and 16 hexadecimal digits.
const (
	canaryWord = "canary-"
	canarySize = len(canaryWord) + 16
)

// textProblem returns what is wrong with a text, empty if nothing is. A text with a replacement character was neutralised
// already.
func (s *secretScanner) textProblem(text string) string {
	if s.hasSecret(text) {
		return "a secret"
	}
	if messages.Printable(text) != text && !strings.ContainsRune(text, '\uFFFD') {
		return "a control character"
	}
	return ""
}

// hasSecret reports whether a text holds a canary of this run. The word alone is none, because servers use it in names.
func (s *secretScanner) hasSecret(text string) bool {
	for {
		i := strings.Index(text, canaryWord)
		if i < 0 || len(text) < i+canarySize {
			return false
		}
		if s.canaries[text[i:i+canarySize]] {
			return true
		}
		text = text[i+1:]
	}
}

// checkText checks a text that the manager shows at the place where, and records a finding once.
func (s *secretScanner) checkText(w *simulation, server, where, text string) {
	if text == "" {
		return
	}
	what := s.textProblem(text)
	if what == "" {
		return
	}
	s.reportLeak(w, server, what+" in "+where)
}

// checkError checks an error that the manager gave to a program: its text, and what a program may print of its parts.
func (s *secretScanner) checkError(w *simulation, server, where string, err error) {
	if err == nil {
		return
	}
	s.checkText(w, server, where, err.Error())
	var e *messages.Error
	if !errors.As(err, &e) {
		return
	}
	for _, part := range []string{e.Text, e.Fix, string(e.Data), string(e.Reply)} {
		if s.hasSecret(part) {
			s.reportLeak(w, server, "a secret in "+where)
		}
	}
	if problem := errorProblem(e); problem != "" {
		w.reportBrokenPromise(server, where+" "+problem+": "+err.Error())
	}
}

// errorProblem returns in what the parts of an error contradict each other or its form, empty if they do not.
func errorProblem(e *messages.Error) string {
	switch {
	case e.Class == "" || e.Text == "" || e.Op == "":
		return fmt.Sprintf("has no class, text or operation (%q, %q)", e.Class, e.Op)
	case strings.HasSuffix(e.Fix, "."):
		return "gives advice that ends with a full stop"
	case e.Retry != "" && e.Outcome != "" && e.Outcome != messages.OutcomeNotSent: // that of a wait has no outcome
		return fmt.Sprintf("says what follows on a call that was not sent (%s), and has the outcome %q", e.Retry, e.Outcome)
	case e.RetryAfter < 0:
		return "asks for a pause below nothing"
	}
	return ""
}

// reportLeak records a finding once for each server and text.
func (s *secretScanner) reportLeak(w *simulation, server, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reported[server+text] {
		return
	}
	if s.reported == nil {
		s.reported = map[string]bool{}
	}
	s.reported[server+text] = true
	w.rec.Add(history.Event{T: w.elapsedTime(), Server: server, Side: history.Harness, Kind: history.Canary, Text: text})
}

// checkStatus checks the texts of a status that the manager writes itself or promises to neutralise.
func (s *secretScanner) checkStatus(w *simulation, st *messages.Status) {
	s.checkText(w, st.Name, "the status: error", st.Error)
	s.checkText(w, st.Name, "the status: reason", st.Reason)
	s.checkText(w, st.Name, "the status: standard error", st.StderrTail)
	for _, q := range st.Quarantined {
		s.checkText(w, st.Name, "the status: quarantined tool", q.Reason)
	}
	if c := st.Challenge; c != nil {
		s.checkText(w, st.Name, "the status: challenge", c.Scheme+c.Scope+c.Text)
	}
}

// checkWholeStatus checks a status as a program would print it, in JSON.
func (s *secretScanner) checkWholeStatus(w *simulation, st *messages.Status) {
	s.checkStatus(w, st)
	b, err := json.Marshal(st)
	if err != nil {
		s.reportLeak(w, st.Name, "a status that cannot be written")
		return
	}
	if s.hasSecret(string(b)) {
		s.reportLeak(w, st.Name, "a secret in the status")
	}
}

// newLogger returns the manager's logger. It checks each line and keeps none.
func (s *secretScanner) newLogger(w *simulation) *zap.Logger {
	return zap.New(&logCore{scanner: s, w: w})
}

// logCore implements zapcore.Core. Any goroutine of the manager may write to it.
type logCore struct {
	scanner *secretScanner
	w       *simulation
	fields  []zapcore.Field
}

// Enabled implements zapcore.Core.
func (c *logCore) Enabled(zapcore.Level) bool { return true }

// With implements zapcore.Core.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{c.scanner, c.w, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements zapcore.Core.
func (c *logCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return to.AddCore(e, c)
}

// Sync implements zapcore.Core.
func (c *logCore) Sync() error { return nil }

// Write implements zapcore.Core.
func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, list := range [][]zapcore.Field{c.fields, fields} {
		for _, f := range list {
			f.AddTo(values)
		}
	}
	c.scanner.checkLogLine(c.w, e.Level.String()+" "+e.Message, values.Fields)
	return nil
}

// checkLogLine checks a line of the manager's log and its values. A line with a panic is a violation, because the manager has to recover
// all of its own goroutines' panics as failures.
func (s *secretScanner) checkLogLine(w *simulation, line string, values map[string]any) {
	server, _ := values["server"].(string)
	bad := s.textProblem(line)
	for key, value := range values {
		if text := s.textProblem(fmt.Sprint(value)); text != "" && key != "stack" {
			bad = text + " in " + key
		}
	}
	if bad != "" {
		w.rec.Add(history.Event{T: w.elapsedTime(), Server: server, Side: history.Manager, Kind: history.Log, Text: messages.Line(line, 300)})
		s.reportLeak(w, server, "the log: "+bad+": "+messages.Line(line, 100))
	}
	if reason, panicked := values["panic"]; panicked && reason != brokenActor {
		w.rec.Add(history.Event{T: w.elapsedTime(), Server: server, Side: history.Harness, Kind: history.Violation, Name: "I9",
			Text: messages.Line(fmt.Sprintf("%s: %v", line, reason), 500)})
	}
}

// slogChecker is the handler of a program that logs through log/slog. It checks each line as logCore does.
type slogChecker struct {
	scanner *secretScanner
	w       *simulation
	attrs   []slog.Attr
}

// Enabled implements slog.Handler.
func (slogChecker) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (c slogChecker) WithAttrs(attrs []slog.Attr) slog.Handler {
	c.attrs = append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...)
	return c
}

// WithGroup implements slog.Handler. What is searched for is found in a group, too.
func (c slogChecker) WithGroup(string) slog.Handler { return c }

// Handle implements slog.Handler.
func (c slogChecker) Handle(_ context.Context, r slog.Record) error {
	values := make(map[string]any, len(c.attrs)+r.NumAttrs())
	keep := func(a slog.Attr) bool {
		values[a.Key] = a.Value.Any()
		return true
	}
	for _, a := range c.attrs {
		keep(a)
	}
	r.Attrs(keep)
	c.scanner.checkLogLine(c.w, r.Level.String()+" "+r.Message, values)
	return nil
}
