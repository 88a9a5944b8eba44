package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// allowance is how often a server may ask: so many times at once, and once more after each pause. It is package requests' word, written anew
// here so that another number there is noticed.
type allowance struct {
	burst int
	every time.Duration
	// left are the questions that it may ask, in parts of one, at the time of the last one. unheard counts those that were refused since.
	left    float64
	at      time.Time
	unheard int
}

// takeQuestion returns whether a question at this time is heard, and how many were not before it.
func (a *allowance) takeQuestion() (heard bool, unheard int) {
	now := time.Now()
	if a.at.IsZero() {
		a.left = float64(a.burst)
	} else {
		a.left = min(float64(a.burst), a.left+float64(now.Sub(a.at))/float64(a.every))
	}
	a.at = now
	if a.left < 1 {
		a.unheard++
		return false, 0
	}
	a.left--
	unheard, a.unheard = a.unheard, 0
	return true, unheard
}

// playAllowances lets two servers ask the person and the model, now and then more often than they may.
func playAllowances(s *stage) {
	heard := map[string]int{} // how many were unheard before each question that was heard, -1 if it was not
	note := func(key string, unheard int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		heard[key] = unheard
	}
	cfg := supervisor.Config{
		Elicit: func(_ context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			note(r.Server+" elicitation/create", r.Unheard)
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{"go":true}`)}, nil
		},
		Sample: func(_ context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
			note(r.Server+" sampling/createMessage", r.Unheard)
			return json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"yes"},"model":"none"}`), nil
		},
	}
	one, two := newServer("one", "read"), newServer("two", "read")
	m := s.connectServers(cfg, one, two)
	if m == nil {
		return
	}
	params := map[string]string{
		"elicitation/create":     `{"message":"May it go on?","requestedSchema":{"type":"object","properties":{"go":{"type":"boolean"}}}}`,
		"sampling/createMessage": `{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":10}`,
	}
	allowed := map[string]*allowance{}
	for _, srv := range []string{"one", "two"} {
		allowed[srv+" elicitation/create"] = &allowance{burst: 10, every: 6 * time.Second}
		allowed[srv+" sampling/createMessage"] = &allowance{burst: 20, every: time.Second}
	}
	for range 4 + s.rng.IntN(4) {
		srv, method := pickOne(s, one, one, two), pickOne(s, "elicitation/create", "sampling/createMessage")
		key, conns := srv.name+" "+method, srv.openConns()
		if len(conns) != 1 {
			s.reportFinding("I1", srv.name, "it has %d connections", len(conns))
			return
		}
		for n := range 1 + s.rng.IntN(26) {
			want, unheard := allowed[key].takeQuestion()
			note(key, -1)
			_, err := conns[0].askClient(s.ctx, method, json.RawMessage(params[method]))
			s.mu.Lock()
			got := heard[key]
			s.mu.Unlock()
			switch {
			case want != (got >= 0):
				s.reportFinding("I24", srv.name, "question %d in a row by %s: heard %t, and by what it may ask it must be heard: %t", n+1, method, got >= 0, want)
				return
			case want && got != unheard:
				s.reportFinding("I24", srv.name, "%s was heard with the word that %d before it were not, and those are %d", method, got, unheard)
				return
			case want && err != nil || !want && err == nil:
				s.reportFinding("I24", srv.name, "%s, heard: %t, was answered with the error %v", method, want, err)
				return
			}
		}
		if s.isOneIn(2) {
			// No whole number of pauses: at the very moment a floating point decides.
			s.letPass(s.drawSpan(0, 30*time.Second).Truncate(time.Second) + 300*time.Millisecond)
		}
	}
}

// playForms lets a server ask the person for forms that can be used and that cannot, and the person answers what fits the form and what does not.
func playForms(s *stage) {
	var shown int
	var answer supervisor.ElicitResult
	files := newServer("files", "read")
	m := s.connectServers(supervisor.Config{ElicitURL: s.isOneIn(2), Elicit: func(_ context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if shown++; r.Server != "files" {
			return supervisor.ElicitResult{}, fmt.Errorf("the question is of %q", r.Server)
		}
		return answer, nil
	}}, files)
	if m == nil || len(files.openConns()) != 1 {
		return
	}
	form := `{"message":"How many?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}}`
	cases := []struct {
		what, params string
		answer       supervisor.ElicitResult
		shown, ok    bool
	}{
		{"a form and an answer that fits it", form, supervisor.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{"n":3}`)}, true, true},
		{"a form and an answer of another type", form, supervisor.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{"n":"three"}`)}, true, false},
		{"a form and an answer without what it requires", form, supervisor.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{}`)}, true, false},
		{"a form that the person declines", form, supervisor.ElicitResult{Action: messages.ElicitDecline}, true, true},
		{"a form that the person cancels", form, supervisor.ElicitResult{Action: messages.ElicitCancel}, true, true},
		{"a form with two members of one name", `{"message":"a","message":"b","requestedSchema":{"type":"object","properties":{}}}`, supervisor.ElicitResult{Action: messages.ElicitDecline}, false, false},
		{"a form with two members that are alike", `{"message":"a","requestedSchema":{"type":"object","properties":{"to":{"type":"string"},"To":{"type":"string"}}}}`, supervisor.ElicitResult{Action: messages.ElicitDecline}, false, false},
	}
	for range 6 {
		c := pickOne(s, cases...)
		s.mu.Lock()
		before := shown
		answer = c.answer
		s.mu.Unlock()
		result, err := files.openConns()[0].askClient(s.ctx, "elicitation/create", json.RawMessage(c.params))
		s.mu.Lock()
		seen := shown > before
		s.mu.Unlock()
		switch {
		case seen != c.shown:
			s.reportFinding("I24", "files", "%s: the person saw it: %t", c.what, seen)
		case (err == nil) != c.ok:
			s.reportFinding("I24", "files", "%s: the server got %s and the error %v", c.what, result, err)
		case c.ok && !strings.Contains(string(result), `"`+c.answer.Action+`"`):
			s.reportFinding("I24", "files", "%s: the server got %s", c.what, result)
		}
	}
}
