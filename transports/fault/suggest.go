package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// triedWords are names that people try for a fault, with the faults that they mean, the nearest first. A word that is near to a
// name by its letters needs no entry.
var triedWords = map[string][]string{
	"delay": {"latency"}, "lag": {"latency"}, "wait": {"latency"},
	"duplicate": {"duplicate-response"}, "repeat": {"duplicate-response"}, "twice": {"duplicate-response"},
	"hang": {"hang-call", "hang-start", "partition"}, "timeout": {"hang-call", "hang-start"}, "freeze": {"stop", "hang-call", "partition"},
	"stall": {"hang-call", "half-line", "partition"}, "block": {"partition", "deaf"}, "silence": {"hang-call", "half-open", "black-hole"},
	"kill": {"crash", "die-mid-call"}, "exit": {"crash", "answer-and-die"}, "die": {"die-mid-call", "crash"}, "panic": {"crash", "die-mid-call"},
	"disconnect": {"close", "reset"}, "hangup": {"close", "reset"}, "eof": {"close"}, "end": {"close"},
	"lose": {"drop", "black-hole"}, "loss": {"drop", "black-hole"}, "discard": {"drop"}, "swallow": {"drop", "hang-call"},
	"tear": {"cut", "half-line"}, "partial": {"cut", "half-line"}, "split": {"slow-drip", "cut"}, "truncated": {"truncate", "cut"},
	"half-message": {"cut", "half-line"}, "corrupt": {"half-line", "noise", "bad-output"}, "garbage": {"noise", "half-line"},
	"error": {"tool-error", "server-error"}, "fail": {"tool-error", "server-error"}, "failure": {"tool-error", "server-error"},
	"unknown": {"die-mid-call", "drop", "hang-call"}, "unknown-outcome": {"die-mid-call", "drop", "hang-call"},
	"rate-limit": {"throttle"}, "429": {"throttle"}, "401": {"unauthorized"}, "403": {"forbidden"}, "404": {"lose-session"},
	"500": {"server-error"}, "503": {"server-error"}, "slow-answer": {"latency"}, "bandwidth": {"slow", "slow-drip"},
	// These are faults, which cannot be done everywhere.
	"half-line": {"cut"}, "truncate": {"cut"}, "stop": {"deaf", "partition", "black-hole"}, "endless-line": {"huge-line"},
	"slow-drip": {"latency"}, "slow": {"latency"}, "cut-stream": {"close", "half-open"}, "reset": {"close", "crash"}, "refuse": {"close"},
	"half-open": {"black-hole", "deaf"}, "stale-session-400": {"lose-session"}, "rotate-token": {"unauthorized"},
	"missing-binary": {"hang-start", "crash"}, "exhausted": {"hang-start", "crash"}, "wrong-content-type": {"server-error", "noise"},
	"silent-delete": {"hang-call"}, "ignore-eof": {"stop"}, "ignore-term": {"stop"}, "grandchild": {"ignore-term"}, "stuck-dial": {"hang-start"},
	"starved": {"slow-start"}, "sleep": {"stop", "black-hole"}, "stderr-flood": {"noise"}, "throttle": {"tool-error"},
	"unauthorized": {"tool-error"}, "forbidden": {"tool-error"}, "redirect": {"close"}, "server-error": {"tool-error", "close"},
	"lose-session": {"close"}, "noise": {"server-error", "wrong-content-type"},
}

// unknownFault returns the error for a name that no fault has: the nearest ones that can be done at the location, and what they
// do. The location 0 is any one of rules.
func unknownFault(name string, at Location) *RuleError {
	if at == 0 {
		at = rules
	}
	err := &RuleError{Text: fmt.Sprintf("there is no fault %q", name)}
	if err.Fix = insteadOf(name, at); err.Fix != "" {
		return err
	}
	// A misspelled fault comes before a misspelled word that people try.
	if tried := messages.Nearest(name, slices.Sorted(maps.Keys(triedWords))); messages.Nearest(name, kindNames(at)) == "" && tried != "" {
		err.Fix = insteadOf(tried, at)
	}
	if err.Fix == "" {
		err.Fix = suggestFix(name, kindNames(at))
	}
	return err
}

// insteadOf returns which faults do at a location what a name means: each with what it does there; empty if none is known.
func insteadOf(name string, at Location) string {
	if at == 0 {
		at = rules
	}
	var found []string
	for _, other := range triedWords[strings.ToLower(name)] {
		if k, _ := Lookup(other); k.Where.Has(at) {
			found = append(found, fmt.Sprintf("%s (%s)", k.Name, k.DoesAt(at)))
		}
	}
	switch len(found) {
	case 0:
		return ""
	case 1:
		return "write " + found[0]
	}
	return "write " + strings.Join(found[:len(found)-1], ", ") + " or " + found[len(found)-1]
}

// suggestFix returns advice for an unknown word: the nearest known one, or all of them.
func suggestFix(word string, known []string) string {
	// A list of all words would hide the one that was meant.
	if best := messages.Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}
