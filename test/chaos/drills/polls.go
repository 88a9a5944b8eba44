package drills

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// answerPart is one of the streams over which the answer to a call comes: how many messages it brings before it breaks, and the pause that the server
// asks for in it; 0: none.
type answerPart struct {
	messages int
	retry    time.Duration
}

// pollScript answers calls over several streams. Any goroutine may use it.
type pollScript struct {
	front *webFront

	mu       sync.Mutex
	parts    []answerPart
	next     int // the part that comes next
	events   int // how many were sent
	progress int
	fellAt   time.Time // when the last stream broke
	// due is the pause after which the next stream is asked for.
	due time.Duration
	// fruitless counts the streams in a row that brought nothing, retry is the last pause that the server asked for.
	fruitless int
	retry     time.Duration
}

// serveStream serves the next stream of the answer.
func (p *pollScript) serveStream(w *eventWriter, m message, last string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := "call-" + string(m.ID)
	if last == "" {
		p.front.mu.Lock()
		p.front.calls[name] = m
		p.front.mu.Unlock()
	} else {
		p.checkResumption(last, name)
	}
	part := answerPart{}
	if p.next < len(p.parts) {
		part = p.parts[p.next]
	}
	if p.next == 0 {
		_ = w.writeText(fmt.Sprintf("id: %s/%d\ndata:\n\n", name, p.events))
	}
	if part.retry > 0 {
		p.retry = part.retry
		_ = w.writeText(fmt.Sprintf("retry: %d\n\n", part.retry.Milliseconds()))
	}
	var params struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params)
	for range part.messages {
		p.events++
		p.progress++
		_ = w.writeText(fmt.Sprintf("id: %s/%d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n",
			name, p.events, params.Meta.ProgressToken, p.progress))
	}
	if p.next >= len(p.parts) {
		_ = w.writeText(fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}\n\n", m.ID))
		return
	}
	p.noteBreak(part)
	p.next++
}

// noteBreak foresees when the next stream is asked for. The client's chance is a half.
func (p *pollScript) noteBreak(part answerPart) {
	if p.next > 0 {
		p.fruitless++
	}
	if p.next == 0 || part.messages > 0 || part.retry > 0 {
		p.fruitless = 0
	}
	pause := min(100*time.Millisecond<<p.fruitless, 5*time.Second)
	p.due = max(pause-pause/4, p.retry)
	if p.fruitless == 0 && p.retry > 0 {
		p.due = p.retry
	}
	p.fellAt = time.Now()
}

// checkResumption judges how the next stream is asked for.
func (p *pollScript) checkResumption(last, name string) {
	s := p.front.stage
	if want := fmt.Sprintf("%s/%d", name, p.events); last != want {
		s.reportFinding("I23", "box", "the stream of a call broke after the event %s, and the rest is asked for after %s", want, last)
	}
	if pause := time.Since(p.fellAt); (pause - p.due).Abs() > time.Microsecond {
		s.reportFinding("I23", "box", "the stream of a call broke, and the rest is asked for after %s; it must be %s (the server asked for %s, and %d streams in a row brought nothing)", pause,
			p.due, p.retry, p.fruitless)
	}
}

// maxFruitless is how many streams in a row may bring nothing before the client gives a call up.
const maxFruitless = 5

// playPolls lets the answers to calls come over several streams that break: the client asks for the rest after the event that it has, when the server wants,
// as long as not too many streams in a row bring nothing, and hears of the progress once.
func playPolls(s *stage) {
	box := newServer("box", "one")
	box.spec.CallTimeout, box.spec.MaxCallTimeout = -1, -1
	front := s.putBehindWeb(box)
	m := s.connectServers(supervisor.Config{}, box)
	if m == nil {
		return
	}
	for range 1 + s.rng.IntN(4) {
		script := &pollScript{front: front}
		quiet := 0 // so many streams in a row, after the first, certainly bring nothing
		if s.isOneIn(3) {
			quiet = maxFruitless - 1 + s.rng.IntN(3)
		}
		fails, row := false, 0
		for n := range 1 + quiet + s.rng.IntN(12) {
			part := answerPart{messages: pickOne(s, 0, 0, 1, 2)}
			if s.isOneIn(6) {
				part.retry = time.Duration(20+s.rng.IntN(8000)) * time.Millisecond
			}
			if n > 0 && n <= quiet {
				part = answerPart{}
			}
			if row++; n == 0 || part.messages > 0 || part.retry > 0 {
				row = 0
			}
			script.parts = append(script.parts, part)
			fails = fails || row == maxFruitless
		}
		front.mu.Lock()
		front.answer = script.serveStream
		front.mu.Unlock()
		s.addStory("the answer comes over streams that bring and ask: %v", script.parts)
		heard := 0
		_, err := m.CallServerTool(s.ctx, "box", "one", struct{}{}, supervisor.WithProgress(func(supervisor.Progress) { heard++ }))
		s.settleAll()
		if outcome := messages.OutcomeOf(err); fails && outcome != messages.OutcomeUnknown || !fails && err != nil {
			s.reportFinding("I2", "box", "%d streams in a row bring nothing (fails: %t), and the call ended with %v (outcome %q)", maxFruitless, fails, err, outcome)
			return
		}
		if !expectEqual(s, "I24", "box", "the number of times that a caller hears of the progress", heard, script.progress) {
			return
		}
	}
}
