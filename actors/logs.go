package actors

import (
	"encoding/json"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

const (
	// maxLogLines and maxLogBytes bound the log messages that are kept of one server; maxLogData bounds one of them.
	maxLogLines = 1_000
	maxLogBytes = 1 << 20
	maxLogData  = 16 << 10
	// maxLogEvents bounds the log messages of one server that become events in a second. The others are only kept: a storm of
	// them would push more important events out of the watchers' queues.
	maxLogEvents = 64
)

// LogLine is one log message of a server as it is kept.
type LogLine struct {
	Time  time.Time `json:"time"`
	Epoch uint64    `json:"epoch,omitempty"`
	messages.LogEntry
}

// ToProto returns the protobuf form of the line.
func (l LogLine) ToProto() *messages.LogLine {
	return &messages.LogLine{Time: timestamppb.New(l.Time), Epoch: l.Epoch, Message: l.LogEntry.ToProto()}
}

// LogLineFromProto returns the Go form of a line.
func LogLineFromProto(p *messages.LogLine) LogLine {
	l := LogLine{Time: p.GetTime().AsTime().Local(), Epoch: p.GetEpoch()}
	if m := p.GetMessage(); m != nil {
		l.LogEntry = *m.ToEntry()
	}
	return l
}

// Logs keeps the newest log messages of a server: at most 1,000, and 1 MiB together. Data of more than 16 KiB becomes a JSON text
// that says so and contains its beginning. If the server's share of the memory budget has no room, its oldest messages go.
// Safe for concurrent use; nothing in it blocks.
type Logs struct {
	// Share is set before the first message; nil counts nothing.
	Share *budget.Share

	mu    sync.Mutex
	lines []LogLine
	bytes int
	// second is the Unix second that eventCount counts for.
	second     int64
	eventCount int
}

// Add keeps a message, if there is room. It reports whether an event about it may be published in this second.
func (l *Logs) Add(line LogLine) (event bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := line.size()
	for len(l.lines) > 0 && (len(l.lines) >= maxLogLines || l.bytes+size > maxLogBytes) {
		l.dropOldest()
	}
	// First the bounds of this server, then the budget that it shares with all servers.
	taken := l.Share.Take(int64(size)) == nil
	// The budget refuses: old messages make room for new ones, which are more useful.
	for !taken && len(l.lines) > 0 {
		l.dropOldest()
		taken = l.Share.Take(int64(size)) == nil
	}
	if taken {
		l.lines = append(l.lines, line)
		l.bytes += size
	}
	// Events are counted per second of the clock, which needs no timer.
	if s := line.Time.Unix(); s != l.second {
		l.second, l.eventCount = s, 0
	}
	l.eventCount++
	return l.eventCount <= maxLogEvents
}

// dropOldest drops the oldest message. The caller holds mu.
func (l *Logs) dropOldest() {
	size := l.lines[0].size()
	l.bytes -= size
	l.Share.Give(int64(size))
	l.lines[0] = LogLine{}
	l.lines = l.lines[1:]
}

// Lines returns a copy, oldest first.
func (l *Logs) Lines() []LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]LogLine(nil), l.lines...)
}

// size estimates the bytes that a message takes.
func (l *LogLine) size() int { return len(l.Level) + len(l.Logger) + len(l.Data) + 64 }

// logEntry returns a log message fit to be kept: bounded, and without the server's secrets.
func logEntry(hide func(string) string, level, logger string, data json.RawMessage) messages.LogEntry {
	e := messages.LogEntry{Level: messages.Line(level, 40), Logger: messages.Line(hide(logger), 200)}
	// The secrets are removed before the text is cut, so that no half of one remains.
	text := hide(string(data))
	if len(text) > maxLogData {
		text = quoteJSON(messages.Line(text, maxLogData/8) + " (cut)")
	}
	// A secret may have crossed the bounds of a JSON text: what is no JSON any more is kept as one text.
	if !json.Valid([]byte(text)) && text != "" {
		text = quoteJSON(text)
	}
	if text != "" {
		e.Data = json.RawMessage(text)
	}
	return e
}

// quoteJSON returns a text as JSON.
func quoteJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}
