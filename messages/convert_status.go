package messages

import "google.golang.org/protobuf/types/known/timestamppb"

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
	p := protoOf(s, &ServerStatus{Tools: int32(len(s.Tools))})
	if i := s.ServerInfo; i != nil {
		p.ServerName, p.ServerVersion = i.Name, i.Version
	}
	return p
}

// ToStatus returns the Go form, as far as the protobuf form has it.
func (p *ServerStatus) ToStatus() Status {
	s := goOf[Status](p)
	if i := s.ServerInfo; i != nil {
		i.Name, i.Version = p.GetServerName(), p.GetServerVersion()
	}
	return s
}

// ToProto returns the protobuf form of the result.
func (r SetServersResult) ToProto() *SetServersReply { return protoOf(r, &SetServersReply{}) }

// ToResult returns the Go form. Where the reply has a failure it is empty.
func (p *SetServersReply) ToResult() SetServersResult { return goOf[SetServersResult](p) }

// What follows is written out: there are many events, log messages and words of progress, and going by names takes ten times as long.

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
		p.Changed = append(p.Changed, protoOf(c, &ChangedToolInfo{}))
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
		e.Changed = append(e.Changed, goOf[ChangedTool](c))
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
