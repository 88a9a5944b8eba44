package gateway

import (
	"math/rand/v2"
	"testing"
)

// Whatever happens in whatever order: a round is answered once, a question gets one answer, the result is given once, and a call
// that is over stays so.
func TestSuspensionInAnyOrder(t *testing.T) {
	for seed := range uint64(5_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s suspension
		answered, rounds, results := map[string]bool{}, map[uint64]bool{}, 0
		closed := false
		for range 40 {
			switch r.IntN(7) {
			case 0:
				if id := s.addQuestion("elicitation/create", nil); id != "" && (closed || s.finished) {
					t.Fatalf("seed %d: a question of a call that has ended", seed)
				}
			case 1:
				before := s.stage
				if q := s.askAgent(); q != nil && before != working {
					t.Fatalf("seed %d: the agent is asked by a request that does not wait", seed)
				}
			case 2:
				round, has := r.Uint64N(s.round+2), func(string) bool { return r.IntN(2) == 0 }
				waits := s.stage == asked || s.stage == ended
				questions, v := s.takeAnswers(round, has)
				if (v == resumed) != (waits && round == s.round) || closed && v != gone {
					t.Fatalf("seed %d: answers to round %d of %d, at stage %d: %v", seed, round, s.round, s.stage, v)
				}
				if v == resumed && rounds[round] {
					t.Fatalf("seed %d: round %d was answered twice", seed, round)
				}
				if v == resumed {
					rounds[round] = true
				}
				for _, q := range questions {
					if answered[q.id] {
						t.Fatalf("seed %d: %s has two answers", seed, q.id)
					}
					answered[q.id] = true
				}
			case 3:
				if !s.finished {
					s.end()
				}
			case 4:
				if s.takeResult() {
					results++
				}
			case 5:
				before := s.stage
				if s.leave() && before != working {
					t.Fatalf("seed %d: a request left that did not wait", seed)
				}
			case 6:
				before, round := s.stage, r.Uint64N(s.round+2)
				if s.expire(round) != ((before == asked || before == ended) && round == s.round) {
					t.Fatalf("seed %d: the time of round %d of %d at stage %d", seed, round, s.round, before)
				}
			}
			if closed && s.stage != over || results > 1 {
				t.Fatalf("seed %d: a call that was over goes on, or has %d results", seed, results)
			}
			closed = s.stage == over
			if len(s.open) > maxOpenQuestions || s.finished && s.stage == working && len(s.open) > 0 {
				t.Fatalf("seed %d: %d open questions", seed, len(s.open))
			}
		}
	}
}

// A question that the server has taken back needs no answer, and an answer to it is ignored.
func TestQuestionIsTakenBack(t *testing.T) {
	var s suspension
	first, second := s.addQuestion("roots/list", nil), s.addQuestion("roots/list", nil)
	if q := s.askAgent(); len(q) != 2 {
		t.Fatalf("the agent is asked %v", q)
	}
	s.dropQuestion(first)
	answered, v := s.takeAnswers(1, func(string) bool { return true })
	if v != resumed || len(answered) != 1 || answered[0].id != second {
		t.Errorf("%v answers %v", v, answered)
	}
	if s.askAgent() != nil {
		t.Error("the agent is asked once more")
	}
}

// Of a call that is over the table keeps how it ended, and of the oldest not even that.
func TestSuspendedCallsLeaveNothing(t *testing.T) {
	var table suspendedCalls
	agents := &modernAgents{principal: "a"}
	for range maxRemembered + 10 {
		c := &modernCall{agents: agents}
		for range 2 { // the second time changes nothing
			if !table.reserve(c) {
				t.Fatal("there is no place")
			}
		}
		c.closeCall(endedExpired)
		table.release(c)
		table.release(c)
		if kept, how := table.find(c.id); kept != nil || how != endedExpired {
			t.Fatalf("the call is %v, %q", kept, how)
		}
	}
	if len(table.byID) != 0 || len(table.count) != 0 || len(table.ended) != maxRemembered || len(table.order) != maxRemembered {
		t.Errorf("%d calls, %d principals, %d and %d ends are kept", len(table.byID), len(table.count), len(table.ended), len(table.order))
	}
}
