package control

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// toProto returns the form in which the description of a process travels.
func (h Hello) toProto() *messages.ManagerReply {
	p := &messages.ManagerReply{Pid: int32(h.PID), Version: h.Version, Started: timestamppb.New(h.Started), Project: h.Project,
		Origin: h.Origin, Names: h.Names}
	if a := h.Audit; a != nil {
		p.Audit = &messages.AuditState{Added: a.Added, Written: a.Written, Waiting: a.Waiting, Lost: a.Lost, Failing: a.Failing,
			LostKinds: map[string]uint64{}}
		for kind, n := range a.Kinds {
			p.Audit.LostKinds[string(kind)] = n
		}
		if !a.Since.IsZero() {
			p.Audit.Since = timestamppb.New(a.Since)
		}
	}
	return p
}

// helloFromProto returns the description that toProto was given.
func helloFromProto(p *messages.ManagerReply) Hello {
	h := Hello{PID: int(p.GetPid()), Version: p.GetVersion(), Started: p.GetStarted().AsTime().Local(), Project: p.GetProject(),
		Origin: p.GetOrigin(), Names: p.GetNames()}
	if a := p.GetAudit(); a != nil {
		h.Audit = &audit.Stats{Added: a.GetAdded(), Written: a.GetWritten(), Waiting: a.GetWaiting(), Lost: a.GetLost(), Failing: a.GetFailing()}
		for kind, n := range a.GetLostKinds() {
			if h.Audit.Kinds == nil {
				h.Audit.Kinds = map[audit.Kind]uint64{}
			}
			h.Audit.Kinds[audit.Kind(kind)] = n
		}
		if a.GetSince() != nil {
			h.Audit.Since = a.GetSince().AsTime().Local()
		}
	}
	return h
}

// toProto returns the form in which a tool travels.
func (t Tool) toProto() *messages.ToolEntry {
	p := t.Tool.ToWholeProto()
	p.QualifiedName, p.State = t.Qualified, t.State
	return p
}

// toolFromProto returns the tool that toProto was given.
func toolFromProto(p *messages.ToolEntry) Tool {
	return Tool{Qualified: p.GetQualifiedName(), State: p.GetState(), Tool: p.ToTool()}
}

// rulesFromProto returns the rules that access.Rules.ToProto was given. A rule that this program cannot read, because the other side is of a
// newer version, denies everything.
func rulesFromProto(p *messages.PermissionsReply) access.Rules {
	return access.Rules{Managed: setFromProto(p.GetManaged()), Own: setFromProto(p.GetOwn()), Hints: p.GetHints()}
}

func setFromProto(p *messages.PermissionSet) access.Set {
	s := access.Set{Default: access.Verdict(p.GetDefault()), DefaultSource: sourceFromProto(p.GetDefaultSource())}
	for _, rule := range p.GetRules() {
		// The text is parsed again, because a rule holds compiled patterns that do not travel.
		read, err := access.Parse(access.Verdict(rule.GetVerdict()), rule.GetText())
		// A rule that is not understood must not be dropped: it could be a denial.
		source := sourceFromProto(rule.GetSource())
		if err != nil || rule.GetUnreadable() {
			read = access.Unreadable(rule.GetText(), source)
		}
		read.Source = source
		s.Rules = append(s.Rules, read)
	}
	return s
}

func sourceFromProto(p *messages.PermissionSource) access.Source {
	return access.Source{File: p.GetFile(), Line: int(p.GetLine()), Col: int(p.GetCol()), Scope: messages.Scope(p.GetScope())}
}

// reloadFromProto returns the result that supervisor.ReloadResult.ToProto was given.
func reloadFromProto(p *messages.ReloadReply) supervisor.ReloadResult {
	r := supervisor.ReloadResult{Remarks: p.GetRemarks(), Held: p.GetHeld(), Rules: p.GetRules(), Restart: p.GetRestart(),
		Changes: config.Changes{Added: p.GetAdded(), Removed: p.GetRemoved(), Replaced: p.GetReplaced(), Adjusted: p.GetAdjusted(),
			Moved: p.GetMoved(), Kept: p.GetKept()}}
	for _, q := range p.GetProblems() {
		r.Problems = append(r.Problems, supervisor.Problem{File: q.GetFile(), Line: int(q.GetLine()), Col: int(q.GetCol()), Server: q.GetServer(),
			Key: q.GetKey(), Text: q.GetText(), Fix: q.GetFix(), Warning: q.GetWarning()})
	}
	return r
}
