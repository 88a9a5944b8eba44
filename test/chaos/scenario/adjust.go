package scenario

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Adjustments are the words of Command.With, which say what an adjust changes. A connection depends on none of them. What is not
// said stays as it is.
var Adjustments = map[string]string{
	"callTimeout":    "how long a call may take",
	"maxCallTimeout": "how long one may take that tells of progress; never less than callTimeout",
	"connect":        "eager or lazy",
	"idleTimeout":    "how long a lazy server may be idle; 0 is for ever",
	"maxInFlight":    "how many calls may be under way; 0 is no bound",
	"maxQueued":      "how many may wait for their turn",
	"deny":           "the tools that are not offered, with commas between; empty is none",
}

// Adjusted returns a server with an adjusted spec. Values that do not fit together are dropped, such as an idleTimeout
// of a server that is not lazy, because a scenario may adjust one key at a time.
func (s Server) Adjusted(with map[string]string) Server {
	// Check has read the values, so that one which does not parse is a missing key.
	duration := func(key string, to *time.Duration) {
		if d, err := time.ParseDuration(with[key]); err == nil {
			*to = d
		}
	}
	number := func(key string, to *int) {
		if n, err := strconv.Atoi(with[key]); err == nil {
			*to = n
		}
	}
	duration("callTimeout", &s.CallTimeout)
	duration("maxCallTimeout", &s.MaxCallTimeout)
	duration("idleTimeout", &s.IdleTimeout)
	number("maxInFlight", &s.MaxInFlight)
	number("maxQueued", &s.MaxQueued)
	s.Connect = messages.Connect(cmp.Or(with["connect"], string(s.Connect)))
	tools := func(key string, to *[]string) {
		if list, said := with[key]; said {
			// None is nil, as in a description that says nothing of tools: the two are one.
			if *to = slices.DeleteFunc(strings.Split(list, ","), func(tool string) bool { return tool == "" }); len(*to) == 0 {
				*to = nil
			}
		}
	}
	tools("deny", &s.Denied)
	tools("refuse", &s.Refused)
	if s.MaxCallTimeout > 0 {
		s.MaxCallTimeout = max(s.MaxCallTimeout, s.CallTimeout)
	}
	if s.Connect != messages.Lazy {
		s.IdleTimeout = 0
	}
	if s.MaxInFlight == 0 {
		s.MaxQueued = 0
	}
	return s
}

// WholeServer among the tools that a rule denies is all of them, and what is read of the server as well.
const WholeServer = "*"

// LetsThrough reports whether neither the spec nor a rule denies a tool.
func (s Server) LetsThrough(tool string) bool {
	return !slices.Contains(s.Denied, tool) && !slices.Contains(s.Refused, tool) && !slices.Contains(s.Refused, WholeServer)
}

// Denies reports whether some of a server's tools are denied at any time, by its spec or by a rule.
func (p *Plan) Denies(server string) bool {
	return slices.ContainsFunc(p.Commands, func(o PlannedCommand) bool {
		return o.Server == server && (o.With["deny"] != "" || o.With["refuse"] != "")
	})
}

// HoldsBack reports whether tools of a server are held back while their definitions wait for an approval.
func (p *Plan) HoldsBack(server string) bool {
	return p.Scenario.Manager.Pins && slices.ContainsFunc(p.Servers, func(s Server) bool { return s.Name == server && s.Pin == messages.PinHold })
}

// Hides reports whether some of the tools that a server lists may not be offered: they are denied, or held back.
func (p *Plan) Hides(server string) bool { return p.Denies(server) || p.HoldsBack(server) }

// adjustment checks the keys and values of an adjust, and that no other command has them.
func (f *findings) adjustment(path string, c Command) {
	if c.Do == "permit" {
		if _, said := c.With["refuse"]; !said || len(c.With) > 1 {
			f.addProblem(path+".with", "write what is denied, such as with: {refuse: write}, or nothing for none", "permit says refuse and nothing else")
		}
		return
	}
	if c.Do != "adjust" {
		if len(c.With) > 0 {
			f.addProblem(path+".with", "leave it out", "the command %s changes nothing of a spec", quoteWord(c.Do))
		}
		return
	}
	known := sortedKeys(Adjustments)
	if len(c.With) == 0 {
		f.addProblem(path+".with", "write what is changed, such as with: {callTimeout: 2s}", "it is not said what is adjusted")
	}
	for _, key := range sortedKeys(c.With) {
		at, value := path+".with."+key, c.With[key]
		switch key {
		case "callTimeout", "maxCallTimeout":
			if d, err := time.ParseDuration(value); err != nil || d <= 0 {
				f.addProblem(at, "write a duration such as 5s", "%s is no time that a call may take", quoteWord(value))
			}
		case "idleTimeout":
			if d, err := time.ParseDuration(value); err != nil || d < 0 {
				f.addProblem(at, "write a duration such as 5s", "%s is no time", quoteWord(value))
			}
		case "maxInFlight", "maxQueued":
			if n, err := strconv.Atoi(value); err != nil || n < 0 {
				f.addProblem(at, "write a number", "%s is no number of calls", quoteWord(value))
			}
		case "connect":
			if !slices.Contains(connectWords, messages.Connect(value)) {
				f.addProblem(at, suggestWord(value, toStrings(connectWords)), "there is no way %s to connect", quoteWord(value))
			}
		// Any list of tools can be denied, also of tools that the server does not have.
		case "deny":
		default:
			f.addProblem(at, suggestWord(key, known), "nothing named %s can be adjusted", quoteWord(key))
		}
	}
}
