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

// maxText bounds each text of a record, in runes, because servers and models choose names and may choose long ones.
const maxText = 500

// recordLine is the encoded part of a record so far.
type recordLine []byte

// appendRecord appends a record as a line without its end, because Seq is not known yet: see appendNumbered. The result is that of
// encoding/json, at a tenth of the cost, because every call pays for it.
func appendRecord(to []byte, r *Record) []byte {
	l := recordLine(to)
	// The order of the fields is that of Record, so that a line reads like the struct.
	l = append(l, `{"v":`...)
	l = strconv.AppendInt(l, Version, 10)
	l = l.appendTime("time", r.Time)
	l = append(rawjson.AppendText(append(l, `,"kind":`...), string(r.Kind)), `,"run":`...)
	l = rawjson.AppendText(l, r.Run)
	l = l.appendText("who", r.Who).appendWord("via", r.Via).appendText("from", r.From)
	l = l.appendNumber("peerPid", r.PeerPID).appendText("peerProgram", r.PeerProgram).appendText("server", r.Server).appendText("tool", r.Tool)
	l = l.appendText("uri", r.URI).appendText("prompt", r.Prompt)
	l = l.appendCount("epoch", r.Epoch)

	// Arguments that are no JSON would break the line; they are left out and marked.
	cut := r.Cut
	l = l.appendWord("argsSha256", r.ArgsSHA256)
	if len(r.Args) > 0 {
		// Another program made them; those that Arguments makes are well-formed.
		if args := compactJSON(r.Args); args == nil {
			cut = true
		} else {
			l = append(append(l, `,"args":`...), args...)
		}
	}
	if cut {
		l = append(l, `,"argsCut":true`...)
	}
	l = l.appendWord("outcome", string(r.Outcome)).appendMillis("ms", r.Millis)
	l = l.appendNumber("attempts", r.Attempts).appendNumber("sent", r.Sent).appendNumber("received", r.Received)
	l = l.appendWord("decision", r.Decision).appendText("rule", r.Rule).appendText("ruleSource", r.Source).appendWord("answer", r.Answer)
	l = l.appendWord("class", string(r.Class)).appendText("error", r.Error)

	l = l.appendWord("phase", string(r.Phase)).appendWord("was", string(r.Was)).appendText("reason", r.Reason)
	l = l.appendWord("change", r.Change).appendText("detail", r.Detail)
	l = l.appendList("added", r.Added).appendList("removed", r.Removed).appendList("adjusted", r.Adjusted)
	l = l.appendNumber("pid", r.PID).appendWord("program", r.Program).appendWord("project", r.Project)
	if r.Lost != nil {
		// Lost records are rare, so the general encoder serves.
		if lost, err := json.Marshal(r.Lost); err == nil {
			l = append(append(l, `,"lost":`...), lost...)
		}
	}
	return l
}

// appendKey appends the name of the next field. The names are constants without characters to escape.
func (l recordLine) appendKey(name string) recordLine {
	l = append(l, ',', '"')
	return append(append(l, name...), '"', ':')
}

// appendWord appends a field whose text is bounded elsewhere, unless it is empty.
func (l recordLine) appendWord(name, s string) recordLine {
	if s == "" {
		return l
	}
	return rawjson.AppendText(l.appendKey(name), s)
}

// appendText appends a field whose text a server, a model or a caller may have chosen, unless it is empty.
func (l recordLine) appendText(name, s string) recordLine {
	if len(s) > maxText {
		s = messages.Line(s, maxText)
	}
	return l.appendWord(name, s)
}

// appendCount and appendNumber append a number, unless it is zero.
func (l recordLine) appendCount(name string, n uint64) recordLine {
	if n == 0 {
		return l
	}
	return strconv.AppendUint(l.appendKey(name), n, 10)
}

// appendNumber appends a number, unless it is zero: a record names what it has.
func (l recordLine) appendNumber(name string, n int) recordLine {
	if n == 0 {
		return l
	}
	return strconv.AppendInt(l.appendKey(name), int64(n), 10)
}

// appendMillis appends milliseconds, unless they are zero or no number.
func (l recordLine) appendMillis(name string, ms float64) recordLine {
	if ms == 0 || math.IsNaN(ms) || math.IsInf(ms, 0) {
		return l
	}
	// All durations that are measured here are whole microseconds.
	if micros := math.Round(ms * 1000); ms > 0 && ms < 1e9 && micros/1000 == ms {
		// Whole microseconds need no float formatting: digits and at most three decimals.
		n := uint64(micros)
		l = strconv.AppendUint(l.appendKey(name), n/1000, 10)
		if n %= 1000; n > 0 {
			l = append(l, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
			for l[len(l)-1] == '0' {
				l = l[:len(l)-1]
			}
		}
		return l
	}
	return strconv.AppendFloat(l.appendKey(name), ms, 'g', -1, 64)
}

// appendTime appends a time in UTC. A time whose year does not have four digits becomes the first of 1970, which can be parsed.
func (l recordLine) appendTime(name string, t time.Time) recordLine {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		t = time.Unix(0, 0).UTC()
	}
	return append(t.AppendFormat(append(l.appendKey(name), '"'), time.RFC3339Nano), '"')
}

// appendList appends a list of names, unless it is empty.
func (l recordLine) appendList(name string, all []string) recordLine {
	if len(all) == 0 {
		return l
	}
	l = append(l.appendKey(name), '[')
	for i, s := range all {
		if i > 0 {
			l = append(l, ',')
		}
		l = rawjson.AppendText(l, s)
	}
	return append(l, ']')
}

// compactJSON returns JSON on one line; nil for a text that is none.
func compactJSON(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return nil
	}
	return out.Bytes()
}

// appendNumbered appends a line that appendRecord made, with its number and its end.
func appendNumbered(to, line []byte, seq uint64) []byte {
	// Seq comes last, because the line was encoded before its number was known.
	to = append(append(to, line...), `,"seq":`...)
	return append(strconv.AppendUint(to, seq, 10), '}', '\n')
}

// numberSize is the most that appendNumbered adds to a line.
const numberSize = len(`,"seq":`) + 20 + 2
