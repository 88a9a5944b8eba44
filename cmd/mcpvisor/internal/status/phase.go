package status

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// ColourOf returns the colour of a phase. The phase is always printed as a word too, so that nothing depends on colour.
func ColourOf(p messages.Phase) text.Colors {
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

// IsUnapproved reports whether a server waits only for the person's approval. Its entry then carries a Hold, and the manager
// shows it as failed. The Hold does not travel to other processes; there the reason tells, which is that of a server that was never
// started and is therefore nobody's word but the manager's.
func IsUnapproved(st messages.Status) bool {
	if st.Status != messages.Failed {
		return false
	}
	return st.Config != nil && st.Config.Hold != "" ||
		st.Class == messages.ClassDenied && st.Retry == messages.RetryNever && strings.Contains(st.Error, "and run `mcpvisor approve ")
}

// UnapprovedWord replaces "failed" in output for people; JSON keeps the phase.
const UnapprovedWord = "unapproved"

// PhaseOf returns the word that a person reads for the phase of a server, and its colour. A server that waits for an approval
// is "unapproved" here, though programs read "failed", because for the person nothing has gone wrong.
func PhaseOf(st messages.Status) (string, text.Colors) {
	if IsUnapproved(st) {
		return UnapprovedWord, ColourOf(messages.NeedsAuth)
	}
	return string(st.Status), ColourOf(st.Status)
}

// PaintPhase returns the word of a server's phase, coloured if w takes colours.
func PaintPhase(w io.Writer, st messages.Status) string {
	word, colours := PhaseOf(st)
	return terminal.PaintText(w, colours, word)
}

// IsCallable reports whether a call would reach the server: it is connected, or lazy and connected by the call.
func IsCallable(st messages.Status) bool {
	return st.Status == messages.Connected || st.Step == messages.Idle
}

// IsAsWanted reports whether a server is in the state that the person configured: connected, disabled, or lazy and at rest.
func IsAsWanted(st messages.Status) bool {
	return st.Status == messages.Connected || st.Status == messages.Disabled || st.Step == messages.Idle
}
