package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// maxText bounds each text of a record, in runes. Names are chosen by servers and models.
const maxText = 500

// line is a record that is being written, so far.
type line []byte

// appendRecord appends a record as a line without its end: Seq is not known yet, see numbered. It is what encoding/json
// makes of it, at a tenth of the cost: a call pays for it.
func appendRecord(to []byte, r *Record) []byte {
	l := line(to)
	l = append(l, `{"v":`...)
	l = strconv.AppendInt(l, Version, 10)
	l = l.time("time", r.Time)
	l = append(rawjson.AppendText(append(l, `,"kind":`...), string(r.Kind)), `,"run":`...)
	l = rawjson.AppendText(l, r.Run)
	l = l.text("who", r.Who).word("via", r.Via).text("from", r.From)
	l = l.number("peerPid", r.PeerPID).text("peerProgram", r.PeerProgram).text("server", r.Server).text("tool", r.Tool)
	l = l.text("uri", r.URI).text("prompt", r.Prompt)
	l = l.count("epoch", r.Epoch)

	cut := r.Cut
	l = l.word("argsSha256", r.ArgsSHA256)
	if len(r.Args) > 0 {
		if args := compact(r.Args); args == nil { // a caller's own: those that Arguments made are well-formed
			cut = true
		} else {
			l = append(append(l, `,"args":`...), args...)
		}
	}
	if cut {
		l = append(l, `,"argsCut":true`...)
	}
	l = l.word("outcome", string(r.Outcome)).millis("ms", r.Millis)
	l = l.number("attempts", r.Attempts).number("sent", r.Sent).number("received", r.Received)
	l = l.word("decision", r.Decision).text("rule", r.Rule).text("ruleSource", r.Source).word("answer", r.Answer)
	l = l.word("class", string(r.Class)).text("error", r.Error)

	l = l.word("phase", string(r.Phase)).word("was", string(r.Was)).text("reason", r.Reason)
	l = l.word("change", r.Change).text("detail", r.Detail)
	l = l.list("added", r.Added).list("removed", r.Removed).list("adjusted", r.Adjusted)
	l = l.number("pid", r.PID).word("program", r.Program).word("project", r.Project)
	if r.Lost != nil {
		if lost, err := json.Marshal(r.Lost); err == nil {
			l = append(append(l, `,"lost":`...), lost...)
		}
	}
	return l
}

func (l line) key(name string) line {
	l = append(l, ',', '"')
	return append(append(l, name...), '"', ':')
}

// word appends a field whose text is ours, or bounded elsewhere, unless it is empty.
func (l line) word(name, s string) line {
	if s == "" {
		return l
	}
	return rawjson.AppendText(l.key(name), s)
}

// text appends a field whose text anybody may have chosen, unless it is empty.
func (l line) text(name, s string) line {
	if len(s) > maxText {
		s = messages.Line(s, maxText)
	}
	return l.word(name, s)
}

func (l line) count(name string, n uint64) line {
	if n == 0 {
		return l
	}
	return strconv.AppendUint(l.key(name), n, 10)
}

func (l line) number(name string, n int) line {
	if n == 0 {
		return l
	}
	return strconv.AppendInt(l.key(name), int64(n), 10)
}

// millis appends milliseconds, unless they are none.
func (l line) millis(name string, ms float64) line {
	if ms == 0 || math.IsNaN(ms) || math.IsInf(ms, 0) {
		return l
	}
	if micros := math.Round(ms * 1000); ms > 0 && ms < 1e9 && micros/1000 == ms { // as all are that are measured here
		n := uint64(micros)
		l = strconv.AppendUint(l.key(name), n/1000, 10)
		if n %= 1000; n > 0 {
			l = append(l, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
			for l[len(l)-1] == '0' {
				l = l[:len(l)-1]
			}
		}
		return l
	}
	return strconv.AppendFloat(l.key(name), ms, 'g', -1, 64)
}

// time appends a time in UTC. One that no year of four digits has is the first of 1970.
func (l line) time(name string, t time.Time) line {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		t = time.Unix(0, 0).UTC()
	}
	return append(t.AppendFormat(append(l.key(name), '"'), time.RFC3339Nano), '"')
}

func (l line) list(name string, all []string) line {
	if len(all) == 0 {
		return l
	}
	l = append(l.key(name), '[')
	for i, s := range all {
		if i > 0 {
			l = append(l, ',')
		}
		l = rawjson.AppendText(l, s)
	}
	return append(l, ']')
}

// compact is JSON on one line; nil for what is none.
func compact(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return nil
	}
	return out.Bytes()
}

// numbered appends a line that appendRecord made, with its number and its end.
func numbered(to, line []byte, seq uint64) []byte {
	to = append(append(to, line...), `,"seq":`...)
	return append(strconv.AppendUint(to, seq, 10), '}', '\n')
}

// numberSize is the most that numbered adds.
const numberSize = len(`,"seq":`) + 20 + 2
