package drills

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// recordBook is the writer of an audit log.
type recordBook struct {
	mu   sync.Mutex
	text bytes.Buffer
	read int
}

// Write implements io.Writer.
func (b *recordBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// takeNew returns the records that were written since the last call, without those of phases.
func (b *recordBook) takeNew() (list []audit.Record, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.SplitSeq(b.text.String()[b.read:], "\n") {
		var r audit.Record
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%w in %q", err, line)
		}
		if r.Kind != audit.KindPhase {
			list = append(list, r)
		}
	}
	b.read = b.text.Len()
	return list, nil
}

// describeRecord returns what is judged of a record, as one text.
func describeRecord(r audit.Record) string {
	return fmt.Sprintf("%s who=%s via=%s server=%s tool=%s uri=%s prompt=%s outcome=%s class=%s decision=%s rule=%s answer=%s change=%s attempts=%d", r.Kind, r.Who, r.Via, r.Server,
		r.Tool, r.URI, r.Prompt, r.Outcome, r.Class, r.Decision, r.Rule, r.Answer, r.Change, r.Attempts)
}

// playRecord calls, reads, commands and changes rules, and compares each record of the audit log with what was done.
func playRecord(s *stage) {
	book, form := &recordBook{}, pickOne(s, audit.None, audit.Hash, audit.Full)
	files := newServer("files", "read", "put", "ask", "never")
	files.offers["resources"] = []map[string]any{{"name": "one", "uri": "drill://files/one"}}
	files.offers["prompts"] = []map[string]any{{"name": "greet"}}
	files.handle = func(_ context.Context, c *toolCall) (any, error) {
		time.Sleep(250 * time.Millisecond)
		if c.tool == "put" {
			return nil, errors.New("the disk is full")
		}
		return textResult("done"), nil
	}
	answer := supervisor.AskOnce
	cfg := supervisor.Config{Audit: book, AuditOptions: audit.Options{Arguments: form},
		Access: access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Deny, "mcp__files__never"), access.MustParse(access.Ask, "mcp__files__ask"),
			access.MustParse(access.Allow, "mcp__files__put")}}},
		Ask: func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) { return answer, nil },
	}
	m := s.connectServers(cfg, files)
	if m == nil {
		return
	}
	s.letPass(5 * time.Second)
	if first, err := book.takeNew(); err != nil || len(first) == 0 || first[0].Kind != audit.KindStart {
		s.reportFinding("I20", "", "the audit log does not begin with a start: %v, %v", first, err)
		return
	}
	for n := range 8 + s.rng.IntN(6) {
		who := pickOne(s, "", "anna", "ben")
		ctx := s.ctx
		if who != "" {
			ctx = supervisor.WithCaller(ctx, who)
		}
		answer = pickOne(s, supervisor.AskOnce, supervisor.AskNo)
		args := []byte(fmt.Sprintf(`{"n":%d}`, n))
		want := doRecorded(ctx, s, m, answer, args)
		s.letPass(5 * time.Second)
		got, err := book.takeNew()
		var texts, wanted []string
		for _, r := range got {
			texts = append(texts, describeRecord(r))
		}
		for _, r := range want {
			if r.Who, r.Via = who, "program"; form == audit.None {
				r.URI = ""
			}
			wanted = append(wanted, describeRecord(r))
		}
		if err != nil || strings.Join(texts, "\n") != strings.Join(wanted, "\n") {
			s.reportFinding("I20", "files", "the audit log has %q (%v), and must have %q", texts, err, wanted)
			return
		}
		for i := range got {
			if got[i].Kind == audit.KindCall && !checkArguments(s, &got[i], form, args) {
				return
			}
		}
	}
}

// doRecorded does one thing, and returns the records that it must leave.
func doRecorded(ctx context.Context, s *stage, m *supervisor.Manager, answer supervisor.AskAnswer, args []byte) []audit.Record {
	call := audit.Record{Kind: audit.KindCall, Server: "files", Outcome: messages.OutcomeResult, Attempts: 1, Decision: string(access.Allow)}
	switch s.rng.IntN(9) {
	case 0:
		call.Tool = "read"
	case 1:
		call.Tool, call.Outcome, call.Rule = "put", messages.OutcomeToolError, "mcp__files__put"
	case 2:
		call.Tool, call.Outcome, call.Class, call.Attempts = "never", messages.OutcomeNotSent, messages.ClassDenied, 0
		call.Decision, call.Rule = string(access.Deny), "mcp__files__never"
	case 3:
		asked := audit.Record{Kind: audit.KindAnswer, Server: "files", Tool: "ask", Answer: string(answer), Decision: string(access.Ask), Rule: "mcp__files__ask"}
		call.Tool, call.Decision, call.Rule, call.Answer = "ask", string(access.Ask), "mcp__files__ask", string(answer)
		if answer == supervisor.AskNo {
			call.Outcome, call.Class, call.Attempts = messages.OutcomeNotSent, messages.ClassDenied, 0
		}
		_, _ = m.CallServerTool(ctx, "files", "ask", args)
		return []audit.Record{asked, call}
	case 4:
		_, _ = m.ReadServerResource(ctx, "files", "drill://files/one")
		return []audit.Record{{Kind: audit.KindRead, Server: "files", URI: "drill://files/one", Outcome: messages.OutcomeResult, Attempts: 1}}
	case 5:
		_, _ = m.GetServerPrompt(ctx, "files", "greet", nil)
		return []audit.Record{{Kind: audit.KindPrompt, Server: "files", Prompt: "greet", Outcome: messages.OutcomeResult, Attempts: 1}}
	case 6:
		_ = m.Toggle(ctx, "files", false)
		_ = m.Toggle(ctx, "files", true)
		return []audit.Record{{Kind: audit.KindChange, Server: "files", Change: "disable"}, {Kind: audit.KindChange, Server: "files", Change: "enable"}}
	case 7:
		_ = m.Reconnect(ctx, "files")
		return []audit.Record{{Kind: audit.KindChange, Server: "files", Change: "reconnect"}}
	default:
		_ = m.SetPermissions(ctx, m.Permissions())
		return []audit.Record{{Kind: audit.KindApproval, Change: "permissions"}}
	}
	_, _ = m.CallServerTool(ctx, "files", call.Tool, args)
	return []audit.Record{call}
}

// checkArguments judges what a record says of a call's arguments, sizes and time.
func checkArguments(s *stage, r *audit.Record, form audit.Arguments, args []byte) bool {
	switch {
	case form == audit.Full != (string(r.Args) == string(args)), form != audit.Full && len(r.Args) > 0, form == audit.None == (r.ArgsSHA256 != ""), form != audit.None && !r.HasArguments(args):
		s.reportFinding("I20", "files", "in the form %q the arguments %s are recorded as %s with the hash %q", form, args, r.Args, r.ArgsSHA256)
	case r.Attempts == 1 && (r.Millis != 250 || r.Received == 0 || r.Sent != len(args)), r.Attempts == 0 && r.Millis != 0:
		s.reportFinding("I20", "files", "a call of 250 ms with %d bytes of arguments is recorded with %g ms, %d bytes sent and %d received", len(args), r.Millis, r.Sent, r.Received)
	default:
		return true
	}
	return false
}
