package gateway

import (
	"slices"
	"strconv"
)

// A call of an agent of the modern era is suspended while its server, of the legacy era, waits for an answer: the agent has got the
// question as the result of its request, and asks again with the answer. suspension has the state of such a call; it is changed by
// one goroutine at a time, decides, and does nothing else.
//
//	working ──askAgent──▶ asked ──takeAnswers──▶ working
//	   │                  │   │
//	   │ end, leave       │   └─end──▶ ended ──takeAnswers──▶ working, which takes the result at once
//	   ▼                  │              │
//	  over ◀────expire────┴──────────────┘
type suspension struct {
	stage stage
	// round counts how often the agent was asked. A state names its round, and is good for one answer.
	round uint64
	// open are the questions without an answer, in the order in which they came; asked counts all of them.
	open  []question
	asked int
	// finished is true once the call has ended at the server.
	finished bool
}

// stage says who waits for whom.
type stage int

const (
	// working: a request of the agent waits for the call.
	working stage = iota
	// asked: the agent has the questions, and no request of it waits.
	asked
	// ended: the call has ended while the agent was asked; its result waits for the agent.
	ended
	// over: the agent has the result, or has left, or its time has passed.
	over
)

// A question is one request of the server to the agent. Its id is its name in inputRequests.
type question struct {
	id, method string
	params     []byte
}

// maxOpenQuestions bounds the questions about one call that are open at once.
const maxOpenQuestions = 16

// addQuestion records a question and returns its id; empty if the call cannot ask any more.
func (s *suspension) addQuestion(method string, params []byte) string {
	if s.finished || s.stage == over || len(s.open) >= maxOpenQuestions {
		return ""
	}
	s.asked++
	id := "question_" + strconv.Itoa(s.asked)
	s.open = append(s.open, question{id, method, params})
	return id
}

// dropQuestion forgets a question that the server has taken back.
func (s *suspension) dropQuestion(id string) {
	s.open = slices.DeleteFunc(s.open, func(q question) bool { return q.id == id })
}

// askAgent returns the questions that the waiting request is answered with; none if it has nothing to ask.
func (s *suspension) askAgent() []question {
	if s.stage != working || s.finished || len(s.open) == 0 {
		return nil
	}
	s.stage = asked
	s.round++
	return slices.Clone(s.open)
}

// verdict says what becomes of a request that brings answers.
type verdict int

const (
	// resumed: the request waits for the call from now on.
	resumed verdict = iota
	// used: its state was used before.
	used
	// gone: the call is over.
	gone
)

// takeAnswers lets a request of the agent wait for the call, and returns the questions that it answers. An answer to no open question
// is ignored: the server has taken that one back, or the agent invented it.
func (s *suspension) takeAnswers(round uint64, has func(id string) bool) (answered []question, v verdict) {
	switch {
	case s.stage == over:
		return nil, gone
	case s.stage == working || round != s.round:
		return nil, used
	}
	s.stage = working
	s.open = slices.DeleteFunc(s.open, func(q question) bool {
		if !has(q.id) {
			return false
		}
		answered = append(answered, q)
		return true
	})
	if s.finished {
		s.open = nil
	}
	return answered, resumed
}

// end records that the call has ended at the server. What the agent is being asked stays open until it comes back: it may be about another call,
// where the server did not say about which.
func (s *suspension) end() {
	s.finished = true
	if s.stage == asked {
		s.stage = ended
		return
	}
	s.open = nil
}

// takeResult reports whether the waiting request gets the result now. It does so once.
func (s *suspension) takeResult() bool {
	if s.stage != working || !s.finished {
		return false
	}
	s.stage = over
	return true
}

// leave records that the request that waited has gone; the call is to be cancelled then.
func (s *suspension) leave() bool {
	if s.stage != working {
		return false
	}
	s.stage = over
	return true
}

// expire records that the time for answering a round has passed, and reports whether it ended the call. Answers that came before it
// win.
func (s *suspension) expire(round uint64) bool {
	if s.stage != asked && s.stage != ended || round != s.round {
		return false
	}
	s.stage = over
	return true
}
