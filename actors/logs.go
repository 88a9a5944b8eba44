package actors

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

const (
	// maxLogLines and maxLogBytes bound the log messages that are kept of one server; maxLogData bounds one of them.
	maxLogLines = 1_000
	maxLogBytes = 1 << 20
	maxLogData  = 16 << 10
	// maxLogEvents is how many log messages of one server become events in a second. The others are only kept: a storm of
	// them must not push what matters out of a watcher's queue.
	maxLogEvents = 64
)

// LogLine is one log message of a server as it is kept.
type LogLine struct {
	Time  time.Time `json:"time"`
	Epoch uint64    `json:"epoch,omitempty"`
	messages.LogEntry
}

// Logs is the bounded memory of a server's log messages: the newest 1,000, of at most 1 MiB together. Data of more than
// 16 KiB becomes a JSON text that says so and holds its beginning. What the server's share of the memory has no room for costs
// it its oldest messages. Safe for concurrent use; nothing in it blocks.
type Logs struct {
	// Share is set before the first message, or nil.
	Share *budget.Share

	mu         sync.Mutex
	lines      []LogLine
	bytes      int
	second     int64 // the second of the events counted in told
	eventCount int
}

// Add keeps a message. It reports whether there is room for an event about it in this second.
func (l *Logs) Add(line LogLine) (event bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := line.size()
	for len(l.lines) > 0 && (len(l.lines) >= maxLogLines || l.bytes+size > maxLogBytes) {
		l.dropOldest()
	}
	taken := l.Share.Take(int64(size)) == nil
	for !taken && len(l.lines) > 0 {
		l.dropOldest()
		taken = l.Share.Take(int64(size)) == nil
	}
	if taken {
		l.lines = append(l.lines, line)
		l.bytes += size
	}
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

// Lines is a copy, oldest first.
func (l *Logs) Lines() []LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]LogLine(nil), l.lines...)
}

func (l *LogLine) size() int { return len(l.Level) + len(l.Logger) + len(l.Data) + 64 }

// logEntry is a log message fit to be kept: bounded, and without the server's secrets.
func logEntry(hide func(string) string, level, logger string, data json.RawMessage) messages.LogEntry {
	e := messages.LogEntry{Level: messages.Line(level, 40), Logger: messages.Line(hide(logger), 200)}
	text := hide(string(data))
	if len(text) > maxLogData {
		text = quoteJSON(messages.Line(text, maxLogData/8) + " (cut)")
	}
	if !json.Valid([]byte(text)) && text != "" { // what was hidden was more than a text in it
		text = quoteJSON(text)
	}
	if text != "" {
		e.Data = json.RawMessage(text)
	}
	return e
}

func quoteJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}
