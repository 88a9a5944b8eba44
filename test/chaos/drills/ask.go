package drills

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// person is one whom calls are asked about, and who answers when the drill says so. An open question is a request without an answer.
type person struct {
	mu   sync.Mutex
	open []*openAsk
}

type openAsk struct {
	request supervisor.AskRequest
	answer  chan askAnswer
	gone    <-chan struct{}
}

type askAnswer struct {
	word supervisor.AskAnswer
	err  error
}

// askPerson is the program's function.
func (p *person) askPerson(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
	q := &openAsk{r, make(chan askAnswer, 1), ctx.Done()}
	p.mu.Lock()
	p.open = append(p.open, q)
	p.mu.Unlock()
	select {
	case a := <-q.answer:
		return a.word, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// openQuestions returns the questions that are open.
func (p *person) openQuestions() (list []*openAsk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.open {
		select {
		case <-q.gone:
		default:
			if len(q.answer) == 0 {
				list = append(list, q)
			}
		}
	}
	p.open = list
	return list
}

// questionsAbout returns those that are open about calls with these arguments.
func (p *person) questionsAbout(args string) (list []*openAsk) {
	for _, q := range p.openQuestions() {
		if string(q.request.Arguments) == args {
			list = append(list, q)
		}
	}
	return list
}

// askingCall is a call that waits for the answer of a person, or has ended.
type askingCall struct {
	number int
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func (c *askingCall) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// playAsk lets several callers make the same call, about which a person is asked, who answers this or that while some of them give up.
func playAsk(s *stage) {
	files, all, own := newServer("files", "read", "put"), &person{}, &person{}
	rules := access.Rules{Own: access.Set{Default: access.Ask}}
	if s.isOneIn(3) {
		rules.Own = access.Set{Rules: []access.Rule{access.MustParse(access.Ask, "mcp__files")}}
	}
	m := s.connectServers(supervisor.Config{Access: rules, Ask: all.askPerson}, files)
	if m == nil {
		return
	}
	granted := map[string]bool{}
	for round := range 4 + s.rng.IntN(4) {
		tool, asked, caller := pickOne(s, "read", "put"), all, ""
		ctx := s.ctx
		if s.isOneIn(2) {
			caller = pickOne(s, "anna", "ben")
			ctx, asked = supervisor.ScopeGrants(supervisor.AskedBy(ctx, own.askPerson), caller), own
		}
		args := fmt.Sprintf(`{"round":%d}`, round)
		var calls []*askingCall
		for n := range 1 + s.rng.IntN(4) {
			c := startAsking(s, ctx, m, tool, args)
			c.number = n
			calls = append(calls, c)
		}
		s.addStory("%d calls of %s for %q", len(calls), tool, caller)
		if granted["/"+tool] || granted[caller+"/"+tool] {
			for _, c := range calls {
				if !c.hasEnded() || c.err != nil {
					s.reportFinding("I20", "files", "the tool %s was allowed until the manager ends, and a call of it ended with %v (ended: %t)", tool, c.err, c.hasEnded())
					return
				}
			}
			continue
		}
		var beside *askingCall
		otherArgs := fmt.Sprintf(`{"round":%d,"beside":true}`, round)
		if s.isOneIn(2) {
			beside = startAsking(s, ctx, m, tool, otherArgs)
		}
		word := playQuestions(s, asked, calls, tool, args)
		if word == supervisor.AskSession || word == supervisor.AskAlways {
			granted[caller+"/"+tool] = true
		}
		if s.manager.IsClosed() {
			return
		}
		if beside != nil {
			refuseBeside(s, asked, beside, tool, otherArgs, word)
		}
	}
}

// startAsking begins a call.
func startAsking(s *stage, ctx context.Context, m *supervisor.Manager, tool, args string) *askingCall {
	ctx, cancel := context.WithCancel(ctx)
	c := &askingCall{cancel: cancel, done: make(chan struct{})}
	s.runBeside(func() {
		defer close(c.done)
		_, c.err = m.CallServerTool(ctx, "files", tool, []byte(args))
	})
	s.settleAll()
	return c
}

// refuseBeside judges that a call with other arguments waits for a question of its own still, whatever was answered about the calls beside it, and
// refuses it. word is the last of those answers: one that allows the tool may answer this question, too.
func refuseBeside(s *stage, asked *person, call *askingCall, tool, args string, word supervisor.AskAnswer) {
	open := asked.questionsAbout(args)
	if isGrant := word == supervisor.AskSession || word == supervisor.AskAlways; isGrant && call.hasEnded() && call.err == nil {
		return
	}
	if call.hasEnded() || len(open) != 1 || open[0].request.Equal() != 1 {
		s.reportFinding("I20", "files", "the last answer about calls of %s was %q, and a call with other arguments had ended with %v (ended: %t); %d questions are open about it", tool, word,
			call.err, call.hasEnded(), len(open))
		return
	}
	s.addStory("the call with other arguments is refused")
	open[0].answer <- askAnswer{word: supervisor.AskNo}
	s.settleAll()
	checkAnswered(s, []*askingCall{call}, tool, supervisor.AskNo)
}

// playQuestions answers the questions about equal calls until all calls have ended, and returns the last answer.
func playQuestions(s *stage, asked *person, calls []*askingCall, tool, args string) (last supervisor.AskAnswer) {
	waiting := len(calls)
	for waiting > 0 {
		open := asked.questionsAbout(args)
		if len(open) != 1 {
			s.reportFinding("I20", "files", "%d calls of %s with equal arguments wait, and %d questions are open", waiting, tool, len(open))
			return ""
		}
		q := open[0]
		if !expectEqual(s, "I20", "files", "the number of calls that a person is told to wait", q.request.Equal(), waiting) {
			return ""
		}
		if q.request.Tool != tool || q.request.Server != "files" {
			s.reportFinding("I20", "files", "a person was asked about %s of %s, and the call is of %s", q.request.Tool, q.request.Server, tool)
		}
		if waiting > 1 && s.isOneIn(2) {
			gone := pickOne(s, waitingOf(calls)...)
			s.addStory("caller %d gives up", gone.number)
			gone.cancel()
			s.settleAll()
			if !gone.hasEnded() || !errors.Is(gone.err, context.Canceled) || messages.OutcomeOf(gone.err) != messages.OutcomeNotSent {
				s.reportFinding("I20", "files", "the caller of %s gave up while a person was asked, and its call ended with %v", tool, gone.err)
			}
			waiting--
			continue
		}
		last = pickOne(s, supervisor.AskNo, supervisor.AskOnce, supervisor.AskOnce, supervisor.AskAll, supervisor.AskSession, supervisor.AskAlways, "perhaps", "error")
		a := askAnswer{word: last}
		if last == "error" {
			a = askAnswer{err: errors.New("the screen is locked")}
		}
		s.addStory("answer %s", last)
		before := waitingOf(calls)
		q.answer <- a
		s.settleAll()
		waiting = len(waitingOf(calls))
		checkAnswered(s, before, tool, last)
		if last == supervisor.AskOnce && waiting != len(before)-1 {
			s.reportFinding("I20", "files", "one of %d calls was allowed, and %d wait on", len(before), waiting)
			return ""
		}
	}
	return last
}

// waitingOf returns the calls that have not ended.
func waitingOf(calls []*askingCall) (list []*askingCall) {
	for _, c := range calls {
		if !c.hasEnded() {
			list = append(list, c)
		}
	}
	return list
}

// checkAnswered judges how the calls ended that a person has just answered about.
func checkAnswered(s *stage, calls []*askingCall, tool string, word supervisor.AskAnswer) {
	for _, c := range calls {
		switch word {
		case supervisor.AskOnce:
			if c.hasEnded() && c.err != nil {
				s.reportFinding("I20", "files", "a call of %s was allowed, and ended with %v", tool, c.err)
			}
		case supervisor.AskAll, supervisor.AskSession, supervisor.AskAlways:
			if !c.hasEnded() || c.err != nil {
				s.reportFinding("I20", "files", "the calls of %s were allowed with the answer %s, and one ended with %v (ended: %t)", tool, word, c.err, c.hasEnded())
			}
		default:
			if !c.hasEnded() || !errors.Is(c.err, supervisor.ErrDenied) || messages.OutcomeOf(c.err) != messages.OutcomeNotSent {
				s.reportFinding("I20", "files", "the calls of %s were answered with %q, and one ended with %v (ended: %t)", tool, word, c.err, c.hasEnded())
			}
		}
	}
}
