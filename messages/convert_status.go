package messages

import "google.golang.org/protobuf/types/known/timestamppb"

// What comes often is written out: a status with each event, events, log messages and words of progress. Going by names takes ten times
// as long.
// ToProto returns the protobuf form of the status for actors: without config, instructions and tools.
func (s Status) ToProto() *ServerStatus {
	tools := len(s.Tools)
	s.Config, s.Instructions, s.Tools = nil, "", nil
	p := s.ToWholeProto()
	p.Tools = int32(tools) //nolint:gosec // a server has fewer tools than an int32 holds
	return p
}

// ToWholeProto returns the protobuf form of the whole status, for the control socket.
func (s Status) ToWholeProto() *ServerStatus {
	p := &ServerStatus{
		Name: s.Name, Status: string(s.Status), Error: s.Error, Scope: string(s.Scope), InstanceOf: s.InstanceOf, Principal: s.Principal,
		Remark: s.Remark, Reason: s.Reason, Transport: string(s.Transport), ProtocolVersion: s.ProtocolVersion, Era: string(s.Era),
		Attempts: clampInt32(s.Attempts), Restarts: clampInt32(s.Restarts), StderrTail: s.StderrTail, Step: string(s.Step),
		Class: string(s.Class), Retry: string(s.Retry), Epoch: s.Epoch, Pid: clampInt32(s.PID), InFlight: clampInt32(s.InFlight),
		Queued: clampInt32(s.Queued), Memory: s.Memory, Warm: s.Warm, ToolsError: s.ToolsError, Noise: s.Noise,
		Challenge: s.Challenge.toProto(), Instructions: s.Instructions, Tools: clampInt32(len(s.Tools)),
	}
	if i := s.ServerInfo; i != nil {
		p.ServerName, p.ServerVersion = i.Name, i.Version
		p.Info = &ServerDescription{Title: i.Title, Description: i.Description, WebsiteUrl: i.WebsiteURL, Icons: iconsToProto(i.Icons)}
	}
	if s.Config != nil {
		p.Config = s.Config.ToProto()
	}
	for _, t := range s.Tools {
		p.ToolList = append(p.ToolList, &ToolSummary{Name: t.Name, Description: t.Description, Annotations: t.Annotations.ToProto()})
	}
	if s.NextAttempt != nil && !s.NextAttempt.IsZero() {
		p.NextAttempt = timestamppb.New(*s.NextAttempt)
	}
	if e := s.Isolation; e != nil {
		p.Isolation = &IsolationStatus{InForce: e.InForce, Missing: e.Missing}
	}
	for _, q := range s.Quarantined {
		p.Quarantined = append(p.Quarantined, &QuarantinedToolInfo{Name: q.Name, Reason: q.Reason, By: q.By})
	}
	for _, c := range s.ChangedTools {
		p.ChangedTools = append(p.ChangedTools, c.toProto())
	}
	if !s.Since.IsZero() {
		p.Since = timestamppb.New(s.Since)
	}
	return p
}

// ToStatus returns the Go form, as far as the protobuf form has it.
func (p *ServerStatus) ToStatus() Status {
	s := Status{
		Name: p.GetName(), Status: Phase(p.GetStatus()), Error: p.GetError(), Scope: Scope(p.GetScope()), InstanceOf: p.GetInstanceOf(),
		Principal: p.GetPrincipal(), Remark: p.GetRemark(), Reason: p.GetReason(), Transport: TransportKind(p.GetTransport()),
		ProtocolVersion: p.GetProtocolVersion(), Era: Era(p.GetEra()), Attempts: int(p.GetAttempts()), Restarts: int(p.GetRestarts()),
		StderrTail: p.GetStderrTail(), Step: Step(p.GetStep()), Class: Class(p.GetClass()), Retry: Retry(p.GetRetry()), Epoch: p.GetEpoch(),
		PID: int(p.GetPid()), InFlight: int(p.GetInFlight()), Queued: int(p.GetQueued()), Memory: p.GetMemory(), Warm: p.GetWarm(),
		ToolsError: p.GetToolsError(), Noise: p.GetNoise(), Challenge: p.GetChallenge().toChallenge(), Instructions: p.GetInstructions(),
	}
	if i := p.GetInfo(); i != nil {
		s.ServerInfo = &ServerInfo{Name: p.GetServerName(), Version: p.GetServerVersion(), Title: i.GetTitle(),
			Description: i.GetDescription(), WebsiteURL: i.GetWebsiteUrl(), Icons: iconsFromProto(i.GetIcons())}
	}
	if p.GetConfig() != nil {
		config := goOf[Spec](p.GetConfig())
		s.Config = &config
	}
	for _, t := range p.GetToolList() {
		s.Tools = append(s.Tools, ToolInfo{Name: t.GetName(), Description: t.GetDescription(), Annotations: t.GetAnnotations().ToAnnotations()})
	}
	if p.GetNextAttempt() != nil {
		at := p.GetNextAttempt().AsTime().Local()
		s.NextAttempt = &at
	}
	if e := p.GetIsolation(); e != nil {
		s.Isolation = &Enforced{InForce: e.GetInForce(), Missing: e.GetMissing()}
	}
	for _, q := range p.GetQuarantined() {
		s.Quarantined = append(s.Quarantined, QuarantinedTool{Name: q.GetName(), Reason: q.GetReason(), By: q.GetBy()})
	}
	for _, c := range p.GetChangedTools() {
		s.ChangedTools = append(s.ChangedTools, c.toTool())
	}
	if p.GetSince() != nil {
		s.Since = p.GetSince().AsTime().Local()
	}
	return s
}

func (c ChangedTool) toProto() *ChangedToolInfo {
	return &ChangedToolInfo{Name: c.Name, Parts: c.Parts, Held: c.Held}
}

func (p *ChangedToolInfo) toTool() ChangedTool {
	return ChangedTool{Name: p.GetName(), Parts: p.GetParts(), Held: p.GetHeld()}
}

// ToProto returns the protobuf form of the result.
func (r SetServersResult) ToProto() *SetServersReply { return protoOf(r, &SetServersReply{}) }

// ToResult returns the Go form. Where the reply has a failure it is empty.
func (p *SetServersReply) ToResult() SetServersResult { return goOf[SetServersResult](p) }

// ToProto returns the protobuf form of the event. Its status is that for actors.
func (e Event) ToProto() *WatchEvent {
	p := &WatchEvent{
		Seq: e.Seq, Kind: string(e.Kind), Server: e.Server, Generation: e.Generation, CallId: e.CallID, Tool: e.Tool,
		Outcome: string(e.Outcome), TookNs: int64(e.Took), Missed: e.Missed, Uri: e.URI, Log: e.Log.ToProto(),
	}
	if !e.Time.IsZero() {
		p.Time = timestamppb.New(e.Time)
	}
	if e.Status != nil {
		p.Status = e.Status.ToProto()
	}
	for _, c := range e.Changed {
		p.Changed = append(p.Changed, c.toProto())
	}
	return p
}

// ToEvent returns the Go form of the event.
func (p *WatchEvent) ToEvent() Event {
	e := Event{
		Seq: p.GetSeq(), Kind: EventKind(p.GetKind()), Server: p.GetServer(), Generation: p.GetGeneration(), CallID: p.GetCallId(),
		Tool: p.GetTool(), Outcome: Outcome(p.GetOutcome()), Took: Duration(p.GetTookNs()), Missed: p.GetMissed(), URI: p.GetUri(),
		Log: p.GetLog().ToEntry(),
	}
	if p.GetTime() != nil {
		e.Time = p.GetTime().AsTime().Local()
	}
	if p.GetStatus() != nil {
		st := p.GetStatus().ToStatus()
		e.Status = &st
	}
	for _, c := range p.GetChanged() {
		e.Changed = append(e.Changed, c.toTool())
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

// ToProto returns the protobuf form of the progress of the call with this id.
func (p Progress) ToProto(callID string) *CallProgress {
	return &CallProgress{CallId: callID, Progress: p.Progress, Total: p.Total, Message: p.Message}
}

// ToProgress returns the Go form of the progress.
func (p *CallProgress) ToProgress() Progress {
	return Progress{Progress: p.GetProgress(), Total: p.GetTotal(), Message: p.GetMessage()}
}
