package main

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mcpvisor/mcpvisor/messages"
)

// colourOf returns the colour of a phase. The phase is always printed as a word too, so that nothing depends on colour.
func colourOf(p messages.Phase) text.Colors {
	switch p {
	case messages.Connected:
		return text.Colors{text.FgGreen}
	case messages.Failed:
		return text.Colors{text.FgRed}
	case messages.NeedsAuth, messages.Pending:
		return text.Colors{text.FgYellow}
	case messages.Disabled:
		return text.Colors{text.Faint}
	}
	return nil
}

// isUnapproved reports whether a server waits only for the person's approval. Its entry then carries a Hold, and the manager
// shows it as failed.
func isUnapproved(st messages.Status) bool {
	return st.Status == messages.Failed && st.Config != nil && st.Config.Hold != ""
}

// unapprovedWord replaces "failed" in output for people; JSON keeps the phase.
const unapprovedWord = "unapproved"

// phaseOf returns the word that a person reads for the phase of a server, and its colour. A server that waits for an approval
// is "unapproved" here, though programs read "failed", because for the person nothing has gone wrong.
func phaseOf(st messages.Status) (string, text.Colors) {
	if isUnapproved(st) {
		return unapprovedWord, colourOf(messages.NeedsAuth)
	}
	return string(st.Status), colourOf(st.Status)
}

// paintPhase returns the word of a server's phase, coloured if w takes colours.
func paintPhase(w io.Writer, st messages.Status) string {
	word, colours := phaseOf(st)
	return paintText(w, colours, word)
}

// isCallable reports whether a call would reach the server: it is connected, or lazy and connected by the call.
func isCallable(st messages.Status) bool {
	return st.Status == messages.Connected || st.Step == messages.Idle
}

// isAsWanted reports whether a server is in the state that the person configured: connected, disabled, or lazy and at rest.
func isAsWanted(st messages.Status) bool {
	return st.Status == messages.Connected || st.Status == messages.Disabled || st.Step == messages.Idle
}
