package peer_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// show writes an action in one line.
func (p *player) show(a peer.Action) string {
	switch a := a.(type) {
	case peer.Note:
		e := a.Event
		if e.Kind == "fired" {
			p.shown[e.Name] = true
		}
		named := "fault"
		if e.Task != "" {
			named = "state"
		}
		return fields("note "+string(e.Kind), named, e.Name, "task", e.Task, "conn", e.Conn, "method", e.Method, "tool", e.Tool, "call", e.Call,
			"value", e.Value, "rev", e.Rev, "hash", e.Hash, "names", shorter(strings.Join(e.Names, ",")))
	case peer.Send:
		return fields("send", "conn", a.Conn, "reply", a.Reply, "more", a.More, "cut", a.Cut, "chunk", a.Chunk, "every", a.Every,
			"type", a.Type) + " " + shorter(string(a.Body))
	case peer.Raw:
		return fields("raw", "conn", a.Conn, "reply", a.Reply, "repeat", a.Repeat, "stderr", a.Stderr) + " " + shorter(string(a.Bytes))
	case peer.Status:
		return fields("status", "conn", a.Conn, "reply", a.Reply, "code", a.Code, "retry-after", a.RetryAfter) +
			headerText(a.Header) + " " + shorter(string(a.Body))
	case peer.Cut:
		return fields("cut", "conn", a.Conn, "reply", a.Reply)
	case peer.Accept:
		return fields("accept", "conn", a.Conn, "session", a.Session)
	case peer.Reject:
		return fields("reject", "conn", a.Conn, "class", a.Class, "code", a.Code, "retry-after", a.RetryAfter) +
			headerText(a.Header) + " " + a.Text
	case peer.Exit:
		return fields("exit", "conn", a.Conn, "code", a.Code, "reset", a.Reset, "half-open", a.HalfOpen, "signal", a.Text)
	case peer.Stop:
		return fields("stop", "conn", a.Conn, "resume", a.Resume)
	case peer.PauseReading:
		return fields("deafen", "conn", a.Conn, "hear", a.Resume)
	case peer.Busy:
		return fields("busy", "conn", a.Conn, "runs", a.Runs, "waits", a.Waits)
	case peer.Spawn:
		return fields("spawn", "conn", a.Conn, "for", a.For, "own-session", a.OwnSession)
	case peer.BlockStart:
		return fields("hide", "class", a.Class, "back", a.Undo, "fault", a.Name)
	}
	return fmt.Sprintf("%T", a)
}

// fields writes what is not zero.
func fields(what string, pairs ...any) string {
	for i := 0; i < len(pairs); i += 2 {
		switch value := fmt.Sprint(pairs[i+1]); value {
		case "", "0", "false", "0s":
		case "true":
			what += fmt.Sprint(" ", pairs[i])
		default:
			what += fmt.Sprint(" ", pairs[i], "=", value)
		}
	}
	return what
}

func headerText(h map[string]string) (text string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		text += fmt.Sprintf(" %s: %s;", name, h[name])
	}
	return text
}

var schemas = regexp.MustCompile(`"inputSchema":\{"type":"object","properties":\{"call".*?\}\}\},"outputSchema":\{.*?\]\}`)

// shorter leaves the usual schemas out, and what is too long to read, and writes characters that act on a terminal so that
// they can be seen.
func shorter(text string) string {
	text = schemas.ReplaceAllString(text, "…")
	quoted := strconv.QuoteToASCII(text)
	text = strings.NewReplacer(`\"`, `"`, `\u2026`, "…", `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
	if n := len(text); n > 700 {
		text = fmt.Sprintf("%s …%d bytes… %s", strings.ToValidUTF8(text[:300], ""), n-600, strings.ToValidUTF8(text[n-300:], ""))
	}
	return text
}
