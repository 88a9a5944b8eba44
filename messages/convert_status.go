package messages

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// ToProto returns the protobuf form of the status for actors: without config, instructions and tools.
func (s Status) ToProto() *ServerStatus {
	p := &ServerStatus{
		Name: s.Name, Status: string(s.Status), Error: s.Error, Scope: string(s.Scope), Reason: s.Reason,
		Transport: string(s.Transport), ProtocolVersion: s.ProtocolVersion, Attempts: int32(s.Attempts),
		Restarts: int32(s.Restarts), StderrTail: s.StderrTail, Step: string(s.Step), Class: string(s.Class),
		Retry: string(s.Retry), Epoch: s.Epoch, Pid: int32(s.PID), Warm: s.Warm, Tools: int32(len(s.Tools)),
		Era: string(s.Era), Remark: s.Remark, InstanceOf: s.InstanceOf, Principal: s.Principal, InFlight: clampInt32(s.InFlight), Queued: clampInt32(s.Queued),
		Memory: s.Memory, ToolsError: s.ToolsError, Noise: s.Noise, Challenge: s.Challenge.toProto(), Since: toTimestamp(s.Since),
	}
	if i := s.ServerInfo; i != nil {
		p.ServerName, p.ServerVersion = i.Name, i.Version
		p.Info = &ServerDescription{Title: i.Title, Description: i.Description, WebsiteUrl: i.WebsiteURL, Icons: iconsToProto(i.Icons)}
	}
	for _, q := range s.Quarantined {
		p.Quarantined = append(p.Quarantined, &QuarantinedToolInfo{Name: q.Name, Reason: q.Reason, By: q.By})
	}
	if e := s.Isolation; e != nil {
		p.Isolation = &IsolationStatus{InForce: e.InForce, Missing: e.Missing}
	}
	p.ChangedTools = changedToProto(s.ChangedTools)
	if s.NextAttempt != nil {
		p.NextAttempt = toTimestamp(*s.NextAttempt)
	}
	return p
}

// ToWholeProto returns the protobuf form of the whole status, for the control socket.
func (s Status) ToWholeProto() *ServerStatus {
	p := s.ToProto()
	p.Instructions = s.Instructions
	if s.Config != nil {
		p.Config = s.Config.ToProto()
	}
	for _, t := range s.Tools {
		p.ToolList = append(p.ToolList, &ToolSummary{Name: t.Name, Description: t.Description, Annotations: t.Annotations.ToProto()})
	}
	return p
}

// ToStatus returns the Go form, as far as the protobuf form has it.
func (p *ServerStatus) ToStatus() Status {
	s := Status{
		Name: p.GetName(), Status: Phase(p.GetStatus()), Error: p.GetError(), Scope: Scope(p.GetScope()), Reason: p.GetReason(),
		Transport: TransportKind(p.GetTransport()), ProtocolVersion: p.GetProtocolVersion(), Attempts: int(p.GetAttempts()),
		Restarts: int(p.GetRestarts()), StderrTail: p.GetStderrTail(), Step: Step(p.GetStep()), Class: Class(p.GetClass()),
		Retry: Retry(p.GetRetry()), Epoch: p.GetEpoch(), PID: int(p.GetPid()), Warm: p.GetWarm(), Era: Era(p.GetEra()),
		Remark: p.GetRemark(), InstanceOf: p.GetInstanceOf(), Principal: p.GetPrincipal(), InFlight: int(p.GetInFlight()), Queued: int(p.GetQueued()), Memory: p.GetMemory(),
		ToolsError: p.GetToolsError(), Noise: p.GetNoise(), Challenge: p.GetChallenge().toChallenge(),
		Since: toTime(p.GetSince()), ChangedTools: changedFromProto(p.GetChangedTools()), Instructions: p.GetInstructions(),
	}
	if i := p.GetInfo(); i != nil {
		s.ServerInfo = &ServerInfo{Name: p.GetServerName(), Version: p.GetServerVersion(), Title: i.GetTitle(),
			Description: i.GetDescription(), WebsiteURL: i.GetWebsiteUrl(), Icons: iconsFromProto(i.GetIcons())}
	}
	if e := p.GetIsolation(); e != nil {
		s.Isolation = &Enforced{InForce: e.GetInForce(), Missing: e.GetMissing()}
	}
	if p.GetNextAttempt() != nil {
		at := toTime(p.GetNextAttempt())
		s.NextAttempt = &at
	}
	for _, q := range p.GetQuarantined() {
		s.Quarantined = append(s.Quarantined, QuarantinedTool{Name: q.GetName(), Reason: q.GetReason(), By: q.GetBy()})
	}
	// The rest is there on the control socket alone.
	if p.GetConfig() != nil {
		config := p.GetConfig().ToSpec()
		config.Scope = "" // it stands in Status.Scope
		s.Config = &config
	}
	for _, t := range p.GetToolList() {
		s.Tools = append(s.Tools, ToolInfo{Name: t.GetName(), Description: t.GetDescription(), Annotations: t.GetAnnotations().ToAnnotations()})
	}
	return s
}

func changedToProto(all []ChangedTool) (out []*ChangedToolInfo) {
	for _, c := range all {
		out = append(out, &ChangedToolInfo{Name: c.Name, Parts: c.Parts, Held: c.Held})
	}
	return out
}

func changedFromProto(all []*ChangedToolInfo) (out []ChangedTool) {
	for _, c := range all {
		out = append(out, ChangedTool{Name: c.GetName(), Parts: c.GetParts(), Held: c.GetHeld()})
	}
	return out
}

// ToProto returns the protobuf form of the event.
func (e Event) ToProto() *WatchEvent {
	p := &WatchEvent{
		Seq: e.Seq, Time: toTimestamp(e.Time), Kind: string(e.Kind), Server: e.Server, Generation: e.Generation,
		CallId: e.CallID, Tool: e.Tool, Outcome: string(e.Outcome), TookNs: int64(e.Took),
		Missed: e.Missed, Uri: e.URI, Changed: changedToProto(e.Changed),
		Log: e.Log.ToProto(),
	}
	if e.Status != nil {
		p.Status = e.Status.ToProto()
	}
	return p
}

// ToEvent returns the Go form of the event.
func (p *WatchEvent) ToEvent() Event {
	e := Event{
		Seq: p.GetSeq(), Time: toTime(p.GetTime()), Kind: EventKind(p.GetKind()), Server: p.GetServer(),
		Generation: p.GetGeneration(), CallID: p.GetCallId(), Tool: p.GetTool(), Outcome: Outcome(p.GetOutcome()),
		Took: Duration(p.GetTookNs()), Missed: p.GetMissed(), URI: p.GetUri(),
		Log: p.GetLog().ToEntry(), Changed: changedFromProto(p.GetChanged()),
	}
	if p.GetStatus() != nil {
		st := p.GetStatus().ToStatus()
		e.Status = &st
	}
	return e
}

// ToProto returns the protobuf form of the log message; nil for nil.
func (l *LogEntry) ToProto() *LogMessage {
	if l == nil {
		return nil
	}
	return &LogMessage{Level: l.Level, Logger: l.Logger, Data: l.Data}
}

// ToEntry returns the Go form of the log message; nil for nil.
func (p *LogMessage) ToEntry() *LogEntry {
	if p == nil {
		return nil
	}
	return &LogEntry{Level: p.GetLevel(), Logger: p.GetLogger(), Data: p.GetData()}
}

// ToProto returns the protobuf form of the result.
func (r SetServersResult) ToProto() *SetServersReply {
	return &SetServersReply{Added: r.Added, Removed: r.Removed, Errors: r.Errors, Adjusted: r.Adjusted, Kept: r.Kept}
}

// ToResult returns the Go form. Where the reply has a failure it is empty.
func (p *SetServersReply) ToResult() SetServersResult {
	return SetServersResult{Added: p.GetAdded(), Removed: p.GetRemoved(), Errors: p.GetErrors(), Adjusted: p.GetAdjusted(), Kept: p.GetKept()}
}

// ToProto returns the protobuf form of the progress of the call with this id.
func (p Progress) ToProto(callID string) *CallProgress {
	return &CallProgress{CallId: callID, Progress: p.Progress, Total: p.Total, Message: p.Message}
}

// ToProgress returns the Go form of the progress.
func (p *CallProgress) ToProgress() Progress {
	return Progress{Progress: p.GetProgress(), Total: p.GetTotal(), Message: p.GetMessage()}
}

// toTimestamp returns the protobuf form of a time, exact to a nanosecond; nil for the zero time.
func toTimestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// toTime returns the Go form of a time, in the machine's zone; the zero time for nil.
func toTime(p *timestamppb.Timestamp) time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.AsTime().Local()
}
