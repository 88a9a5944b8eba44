package actors

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Status returns the view in its published form. It is built for each question, because views change much more often than a
// program asks. Every text of the server in it is neutralised or bounded, and free of the server's secrets.
func (v *View) Status() messages.Status {
	s, hide := v.State, v.Spec.Redactor()
	st := messages.Status{
		Name: v.Name, Status: s.Phase, Scope: v.Spec.Scope, Transport: v.Spec.Kind(), Step: s.Step, Retry: s.Retry,
		Epoch: s.Epoch, Warm: s.Warm(), Attempts: v.Attempts, Restarts: v.Restarts, Since: v.Since,
	}
	st.Remark = v.Spec.Remark
	st.InstanceOf, st.Principal = v.Spec.InstanceOf, messages.Line(v.Spec.Principal, 200)
	// The spec is shown without the values of its headers, environment and auth.
	config := v.Spec.Redacted()
	st.Config = &config
	// The process and its stderr belong to the open connection, or else to the one before it.
	conn := v.Last
	if v.Session != nil {
		conn = v.Session.Conn()
	}
	// The child writes to stderr what it likes, so control characters are made visible.
	st.StderrTail, st.Noise = messages.Printable(conn.StderrTail), conn.Noise
	// A process that has ended keeps its text and loses its number, which another process may have by now.
	if v.Session != nil && conn.Exit == "" {
		st.PID, st.Isolation = conn.PID, conn.Isolation
	}
	if s.Cause != nil {
		st.Error, st.Class, st.Challenge = s.Cause.Text, s.Cause.Class, s.Cause.Challenge
	}
	if v.Link != nil {
		st.InFlight, st.Queued = v.Link.gate.InFlight(), v.Link.callQueue.waitingCalls()
	}
	if !s.NextAt.IsZero() {
		// A copy, because the view must not be reachable through the status.
		at := s.NextAt
		st.NextAttempt = &at
	}
	if v.Info != nil && v.Info.ServerInfo.Name != "" {
		info := v.Info.ServerInfo
		// The server chose these texts; they stand in one line of a terminal.
		info.Name, info.Version, info.Title =
			messages.Line(info.Name, 200), messages.Line(info.Version, 100), messages.Line(info.Title, 200)
		st.ServerInfo = &info
	}
	// What an ended connection had negotiated says nothing about the next one.
	if v.Info != nil && (s.Phase == messages.Connected || s.Warm()) {
		st.ProtocolVersion, st.Era, st.Instructions = v.Info.ProtocolVersion, v.Info.Era, hide(v.Info.Instructions)
	}
	// A server that rests offers the tools of its last list.
	if v.Tools != nil && (s.Phase == messages.Connected || s.Step == messages.Idle) {
		st.Quarantined, st.ChangedTools = v.Tools.Quarantined, v.Tools.Changed
		st.Tools = make([]messages.ToolInfo, 0, len(v.Tools.Tools))
		for i := range v.Tools.Tools {
			// Descriptions may quote what the server was configured with, so secrets are removed.
			t := &v.Tools.Tools[i]
			st.Tools = append(st.Tools, messages.ToolInfo{
				Name: t.Name, Description: messages.Printable(hide(t.Description)), Annotations: t.Annotations,
			})
		}
	}
	// A list error of a server that is not connected says nothing about now.
	if s.Phase == messages.Connected {
		st.ToolsError = v.Unlisted
	}
	st.Reason = v.Reason()
	return st
}

// Reason returns the reason of the phase in a few words, for a person; empty where the phase needs no reason.
func (v *View) Reason() string {
	s := v.State
	// Without a planned attempt there is no time to name.
	at := func(word string) string {
		if s.NextAt.IsZero() {
			return ""
		}
		return ", " + word + " at " + s.NextAt.Format(time.TimeOnly)
	}
	switch s.Phase {
	// A restart names what it follows; every other step names itself.
	case messages.Pending:
		if s.Step == messages.Restarting && s.Cause != nil {
			return fmt.Sprintf("restarting after %s%s", s.Cause.Class, at("next attempt"))
		}
		if s.Step == messages.Installing {
			return "installing (" + runnerOf(v.Spec) + ")"
		}
		if v.Overdue != "" && overdueText[s.Step] != "" {
			return string(s.Step) + ": " + v.Overdue
		}
		return string(s.Step)
	case messages.Failed:
		// A failure without a cause cannot occur; the text would then be "none".
		class := messages.ClassNone
		if s.Cause != nil {
			class = s.Cause.Class
		}
		switch {
		case s.Retry == messages.RetryParked:
			return fmt.Sprintf("%s, parked%s", class, at("probe"))
		case s.Retry == messages.RetryNever:
			return fmt.Sprintf("%s, not retried", class)
		case s.Retry == "":
			// The restart policy decides when the failed attempt has released its process or socket, which may take seconds. A
			// reader who finds no next attempt must not conclude that there will be none.
			return fmt.Sprintf("%s, next attempt not planned yet", class)
		default:
			return string(class) + at("retry")
		}
	// The scope is the server's text, shown so that the person knows what is asked for.
	case messages.NeedsAuth:
		if s.Cause != nil && s.Cause.Challenge != nil && s.Cause.Challenge.Scope != "" {
			return "credentials needed for " + messages.Line(s.Cause.Challenge.Scope, 200)
		}
		return "credentials needed"
	case messages.Disabled:
		if s.Warm() {
			return "warm: its connection is kept"
		}
		return "cold"
	case messages.Connected:
		if v.Unlisted != "" {
			return "its tools cannot be listed: " + messages.Line(v.Unlisted, 200) + "; they are asked for again"
		}
	}
	return ""
}
