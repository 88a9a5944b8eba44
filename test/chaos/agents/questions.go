package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// An openQuestion is a question of a server that an agent has not answered yet.
type openQuestion struct {
	// call is what the question is about, empty if it names nothing.
	call string
	// takenBack is closed when the endpoint says that no answer is wanted any more.
	takenBack chan struct{}
}

const (
	// answerTime is the time that the person or the model of an agent takes, and slowAnswerTime that of every third one.
	answerTime     = 200 * time.Millisecond
	slowAnswerTime = 1700 * time.Millisecond
	// takeBackTime is the time in which an agent hears that a question is not asked any more whose call has ended.
	takeBackTime = 500 * time.Millisecond
)

// questionText is what a server of the harness asks: it names the call, or the state of the request, and itself.
var questionText = regexp.MustCompile(`Go on with ([^ ?]+) of ([^ ?]+)\?`)

// receiveQuestion records a question of a server, and answers it after a while in the name of the server that it names, unless it is
// taken back before.
func (s *session) receiveQuestion(m *message, via string) {
	a := s.agent
	e := history.Event{Kind: history.Questioned, Epoch: s.epoch, Method: m.Method, ID: via}
	if found := questionText.FindSubmatch(m.Params); found != nil {
		e.About, e.Server = string(found[1]), string(found[2])
	}
	id := string(m.ID)
	q := &openQuestion{call: e.About, takenBack: make(chan struct{})}
	s.mu.Lock()
	_, twice := s.questions[id]
	s.questions[id] = q
	s.questioned++
	number := s.questioned
	wait := answerTime
	if s.questioned%3 == 0 {
		wait = slowAnswerTime
	}
	s.mu.Unlock()
	a.recordEvent(e)
	_ = s.recordConsulted(m.Method, m.Params)
	if twice {
		a.fleet.reportFinding("I25", e.Server, fmt.Sprintf("%s was asked something with the id %s, which the question has that it has not answered yet", a.plan.Name, id))
	}
	a.fleet.running.Go(func() {
		select {
		case <-time.After(wait):
		case <-q.takenBack:
			return
		case <-s.over:
			return
		}
		s.checkStillAsked(q, e.Server)
		s.mu.Lock()
		_, open := s.questions[id]
		delete(s.questions, id)
		s.mu.Unlock()
		if !open {
			return
		}
		answer := s.adviceOn(m.Method, e.About, e.Server, number)
		body := append([]byte(`{"jsonrpc":"2.0","id":`), m.ID...)
		body = append(body, answer...)
		body = append(body, '}')
		s.link.send(a.fleet.lifetime, outgoing{body: body})
		// Some agents answer twice. The second answer is dropped, and nothing waits for its end.
		if number%5 == 4 {
			s.link.send(a.fleet.lifetime, outgoing{body: body})
		}
	})
}

// recordConsulted records a question that an agent has before it, as its server asked it. It returns the call that the question is about.
func (s *session) recordConsulted(method string, params []byte) (call string) {
	e := history.Event{Kind: history.Consulted, Epoch: s.epoch, Method: method, Hash: history.HashContent(params)}
	if found := questionText.FindSubmatch(params); found != nil {
		e.About, e.Server = string(found[1]), string(found[2])
	}
	s.agent.recordEvent(e)
	return e.About
}

// adviceOn returns the member with which an agent answers a question, and records it. Of the people behind agents every third refuses to
// answer, and every fourth declines what a form asks.
func (s *session) adviceOn(method, about, server string, number int) string {
	e := history.Event{Server: server, Method: method, About: about}
	switch {
	case number%3 == 2:
		e.Code = -1
		return `,"error":` + string(s.recordAdvice(e, `{"code":-1,"message":"the user of `+s.agent.plan.Name+` rejected the question"}`))
	case number%4 == 3 && method == "elicitation/create":
		return `,"result":` + string(s.recordAdvice(e, strings.Replace(s.agent.answerTo(method, server), "accept", "decline", 1)))
	}
	return `,"result":` + string(s.recordAdvice(e, s.agent.answerTo(method, server)))
}

// recordAdvice records the answer of an agent to a question, and returns it.
func (s *session) recordAdvice(e history.Event, content string) json.RawMessage {
	e.Kind, e.Epoch, e.Hash = history.Advised, s.epoch, history.HashContent([]byte(content))
	s.agent.recordEvent(e)
	return json.RawMessage(content)
}

// takeQuestionBack notes that the endpoint wants no answer to a question any more. It returns the call that the question was about.
func (s *session) takeQuestionBack(params json.RawMessage) (call string) {
	id := string(rawjson.Member(params, "requestId"))
	s.mu.Lock()
	q := s.questions[id]
	delete(s.questions, id)
	s.mu.Unlock()
	if q == nil {
		return "" // the answer was on its way
	}
	close(q.takenBack)
	return q.call
}

// checkStillAsked judges that a question which stands is about a call that runs: with the answer to the call, at the latest, it is taken
// back. A call that the agent has taken back itself has no answer, and only over HTTP does a server of the legacy era say about which call
// it asks.
func (s *session) checkStillAsked(q *openQuestion, server string) {
	if q.call == "" || s.isAbout(q.call) || !slices.ContainsFunc(s.agent.fleet.Plan.Servers, func(p scenario.Server) bool {
		return p.Name == server && p.Kind == messages.HTTP && p.Era != messages.EraModern
	}) {
		return
	}
	select {
	case <-time.After(takeBackTime):
		s.agent.fleet.reportFinding("I24", server, fmt.Sprintf("%s has had the answer to its call %s for %s, and the question about it was not taken back",
			s.agent.plan.Name, q.call, takeBackTime))
	case <-q.takenBack:
	case <-s.over:
	}
}

// isAbout reports whether what a question names may still want the answer: no call that this session has had the answer to.
func (s *session) isAbout(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.answered[call]
}
