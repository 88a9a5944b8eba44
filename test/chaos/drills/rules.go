package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// plannedRule is a rule as the drill knows it: the text after mcp__ or that of *:…, and what it matches.
type plannedRule struct {
	verdict access.Verdict
	subject string
}

// matches reports whether the rule is about a call. path is the argument that conditions look at.
func (r plannedRule) matches(server, tool, path string) bool {
	subject, condition, _ := strings.Cut(strings.TrimSuffix(r.subject, ")"), "(path:")
	if condition != "" && !strings.HasPrefix(path, strings.TrimSuffix(condition, "*")) {
		return false
	}
	if pattern, ok := strings.CutPrefix(subject, "*:"); ok {
		return strings.HasPrefix(tool, strings.TrimSuffix(pattern, "*"))
	}
	own, pattern, hasTool := strings.Cut(strings.TrimPrefix(subject, "mcp__"), "__")
	if prefix, isPattern := strings.CutSuffix(pattern, "*"); isPattern {
		return own == server && strings.HasPrefix(tool, prefix)
	}
	return own == server && (!hasTool || pattern == tool)
}

// plannedRules are the rules in force, and the two defaults.
type plannedRules struct {
	managed, own               []plannedRule
	managedDefault, ownDefault access.Verdict
	// hasPerson says that a person can be asked: the annotations of trusted servers count then without a default.
	hasPerson bool
}

// toRules returns the rules as the manager is given them.
func (p *plannedRules) toRules() (r access.Rules) {
	for _, one := range p.managed {
		r.Managed.Rules = append(r.Managed.Rules, access.MustParse(one.verdict, one.subject))
	}
	for _, one := range p.own {
		r.Own.Rules = append(r.Own.Rules, access.MustParse(one.verdict, one.subject))
	}
	r.Managed.Default, r.Own.Default = p.managedDefault, p.ownDefault
	return r
}

// strictness orders the verdicts.
var strictness = map[access.Verdict]int{access.Allow: 0, "": 0, access.Ask: 1, access.Deny: 2}

func strictestOf(rules []plannedRule, server, tool, path string) (found access.Verdict) {
	for _, r := range rules {
		if r.matches(server, tool, path) && (found == "" || strictness[r.verdict] > strictness[found]) {
			found = r.verdict
		}
	}
	return found
}

// decide returns the verdict about a call. trusted says that the annotations of the server's tools count.
func (p *plannedRules) decide(server, tool, path string, trusted bool) access.Verdict {
	if v := strictestOf(p.managed, server, tool, path); v != "" {
		return v
	}
	v := strictestOf(p.own, server, tool, path)
	if v == "" {
		v = p.ownDefault
		isDefaultSet := p.ownDefault != "" || p.managedDefault != "" || p.hasPerson
		if trusted && isDefaultSet && p.ownDefault != access.Deny {
			switch tool {
			case "read":
				v = access.Allow
			case "delete_all":
				v = access.Ask
			}
		} else if trusted && isDefaultSet && tool == "read" {
			v = access.Allow
		}
	}
	if strictness[p.managedDefault] > strictness[v] {
		v = p.managedDefault
	}
	if v == "" {
		return access.Allow
	}
	return v
}

// drawRules draws rules of all forms.
func drawRules(s *stage, hasPerson bool) *plannedRules {
	p := &plannedRules{hasPerson: hasPerson, ownDefault: pickOne(s, "", "", access.Allow, access.Ask, access.Deny), managedDefault: pickOne(s, "", "", "", access.Ask, access.Deny)}
	draw := func(most int) (rules []plannedRule) {
		for range s.rng.IntN(most + 1) {
			r := plannedRule{pickOne(s, access.Allow, access.Ask, access.Deny), pickOne(s, "mcp__files", "mcp__files__read", "mcp__mail__put", "mcp__files__*", "mcp__mail__p*",
				"mcp__files__put(path:docs/*)", "mcp__mail__read(path:docs/*)", "*:delete_*")}
			if r.verdict == access.Allow && strings.HasPrefix(r.subject, "*") {
				r.verdict = access.Deny
			}
			rules = append(rules, r)
		}
		return rules
	}
	p.own = draw(3)
	if s.isOneIn(3) {
		p.managed = draw(2)
	}
	return p
}

// playRules changes the rules about calls, and compares what is decided, shown and called with them.
func playRules(s *stage) {
	tools := []string{"read", "put", "delete_all"}
	asked, refused := 0, ""
	servers := []*server{newServer("files"), newServer("mail")}
	for _, srv := range servers {
		srv.tools = []map[string]any{toolNamed("read"), toolNamed("put"), toolNamed("delete_all")}
		srv.tools[0]["annotations"] = map[string]any{"readOnlyHint": true}
		srv.tools[2]["annotations"] = map[string]any{"readOnlyHint": false, "destructiveHint": true}
		srv.spec.Trusted = s.isOneIn(3)
		srv.handle = func(_ context.Context, c *toolCall) (any, error) { return textResult("secret of " + srv.name), nil }
	}
	hasPerson, isSanitized := s.isOneIn(2), s.isOneIn(2)
	now := drawRules(s, hasPerson)
	cfg := supervisor.Config{Access: now.toRules()}
	if hasPerson {
		cfg.Ask = func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
			asked++
			return supervisor.AskOnce, nil
		}
	}
	if s.isOneIn(2) {
		refused = pickOne(s, tools...)
		cfg.Allow = func(_ context.Context, t *supervisor.Tool, _ json.RawMessage) error {
			if t.Name == refused {
				return errors.New("not today")
			}
			return nil
		}
	}
	if isSanitized {
		cfg.Sanitize = func(_ *supervisor.Tool, result json.RawMessage) json.RawMessage {
			return json.RawMessage(strings.Replace(string(result), "secret", "******", 1))
		}
	}
	m := s.connectServers(cfg, servers...)
	if m == nil {
		return
	}
	for range 3 + s.rng.IntN(3) {
		for _, srv := range servers {
			var shown, want []string
			for _, e := range m.Tools().Server(srv.name) {
				shown = append(shown, e.Tool.Name)
			}
			slices.Sort(shown)
			for _, tool := range []string{"delete_all", "put", "read"} {
				if slices.ContainsFunc([]string{"docs/x", "etc/x"}, func(path string) bool { return now.decide(srv.name, tool, path, srv.spec.Trusted) != access.Deny }) {
					want = append(want, tool)
				}
			}
			// Whether rules with conditions deny every call is not worked out: such a tool may be shown.
			isUnsure := slices.ContainsFunc(slices.Concat(now.own, now.managed), func(r plannedRule) bool { return strings.Contains(r.subject, "(") })
			if missing := slices.ContainsFunc(want, func(tool string) bool { return !slices.Contains(shown, tool) }); missing || !isUnsure && !slices.Equal(shown, want) {
				s.reportFinding("I14", srv.name, "by the rules %+v its tools %q are shown, and must be %q", *now, shown, want)
				return
			}
			tool, path := pickOne(s, tools...), pickOne(s, "docs/x", "etc/x")
			if !checkRuled(s, m, srv, ruledCall{tool, path, now.decide(srv.name, tool, path, srv.spec.Trusted), hasPerson, isSanitized, tool == refused}, &asked) {
				return
			}
		}
		now = drawRules(s, hasPerson)
		s.addStory("the rules are %+v", *now)
		if err := m.SetPermissions(s.ctx, now.toRules()); err != nil {
			s.reportFinding("I20", "", "SetPermissions ended with %v", err)
		}
	}
}

// ruledCall is a call with what is decided about it.
type ruledCall struct {
	tool, path                        string
	verdict                           access.Verdict
	hasPerson, isSanitized, isRefused bool
}

// checkRuled makes a call and compares what comes of it with what is decided about it.
func checkRuled(s *stage, m *supervisor.Manager, srv *server, c ruledCall, asked *int) bool {
	args := json.RawMessage(fmt.Sprintf(`{"path":%q}`, c.path))
	if d := m.Decide(srv.name, c.tool, args); d.Verdict != c.verdict || d.Why == "" && d.Verdict != access.Allow {
		s.reportFinding("I20", srv.name, "the call of %s with the path %s is decided as %s because %q, and must be as %s", c.tool, c.path, d.Verdict, d.Why, c.verdict)
		return false
	}
	before, askedBefore := len(srv.heardOf("tools/call")), *asked
	res, err := m.CallServerTool(s.ctx, srv.name, c.tool, args)
	wantAsked := c.verdict == access.Ask && c.hasPerson && !c.isRefused
	mayRun := !c.isRefused && (c.verdict == access.Allow || wantAsked)
	switch reached := len(srv.heardOf("tools/call")) > before; {
	case reached != mayRun, mayRun && err != nil:
		s.reportFinding("I20", srv.name, "the call of %s, decided as %s (refused by the program: %t), reached the server: %t, and ended with %v", c.tool, c.verdict, c.isRefused, reached, err)
		return false
	case !mayRun && (!errors.Is(err, supervisor.ErrDenied) || messages.OutcomeOf(err) != messages.OutcomeNotSent):
		s.reportFinding("I20", srv.name, "the call of %s may not be made, and ended with %v", c.tool, err)
		return false
	case mayRun && strings.Contains(res.Text(), "secret") == c.isSanitized:
		s.reportFinding("I20", srv.name, "the result of %s is %q, and the program takes the secret out: %t", c.tool, res.Text(), c.isSanitized)
		return false
	case (*asked > askedBefore) != wantAsked && !c.isRefused:
		s.reportFinding("I20", srv.name, "a person was asked about %s %d times, and must be: %t", c.tool, *asked-askedBefore, wantAsked)
		return false
	}
	return true
}
