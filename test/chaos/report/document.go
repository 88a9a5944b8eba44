package report

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Version is the version of the shape of Document. Added fields keep it; a field that is removed or changes its meaning
// raises it.
const Version = 1

// Document is the content of report.json. Every duration and every time is in nanoseconds, times since the start of the
// run; every text of a server is neutralised and on one line.
type Document struct {
	Version int `json:"version"`
	// Tool is the version of mcpvisor.
	Tool     string `json:"tool"`
	Scenario string `json:"scenario"`
	About    string `json:"about,omitempty"`
	// Seed is written as text, because many readers of JSON keep 53 bits of a number.
	Seed uint64        `json:"seed,string"`
	Tier scenario.Tier `json:"tier"`
	// Replay is the command that runs the same again.
	Replay string `json:"replay"`
	// Found is the command for the larger day in which the violation was found, if this is the run of a smaller one.
	Found string `json:"found,omitempty"`
	// Answer is the answer of all verdicts together, Summary the same as a sentence.
	Answer  invariant.Answer `json:"answer"`
	Summary string           `json:"summary"`
	// Started and Took are by the wall clock; Started is nil if it is unknown, as for a history from another machine.
	Started *time.Time    `json:"started,omitempty"`
	Took    time.Duration `json:"took"`
	// Lasted is the time of the last event, Broken that of the first fault, Healed that at which all faults had ended.
	Lasted time.Duration `json:"lasted"`
	Broken time.Duration `json:"broken"`
	Healed time.Duration `json:"healed"`
	Events int           `json:"events"`

	Verdicts  []VerdictReport `json:"verdicts"`
	Latencies []Latency       `json:"latencies"`
	Coverage  []Coverage      `json:"coverage"`
	Restarts  Restarts        `json:"restarts"`
	Gate      []PoolUse       `json:"gate"`
	Servers   []ServerFacts   `json:"servers"`
}

// VerdictReport is a verdict with its evidence in words. Looked counts what the check examined.
type VerdictReport struct {
	ID       string           `json:"id"`
	Title    string           `json:"title"`
	Answer   invariant.Answer `json:"answer"`
	Why      string           `json:"why,omitempty"`
	Before   string           `json:"before,omitempty"`
	Server   string           `json:"server,omitempty"`
	At       time.Duration    `json:"at,omitempty"`
	Looked   int              `json:"looked"`
	Evidence []Evidence       `json:"evidence,omitempty"`
}

// Evidence is one event. Line is its line in history.jsonl; the plan is line 1.
type Evidence struct {
	Line   int           `json:"line"`
	T      time.Duration `json:"t"`
	Server string        `json:"server,omitempty"`
	Side   string        `json:"side"`
	Text   string        `json:"text"`
}

// Latency summarises the calls to the healthy or the faulty servers in a part of the run.
type Latency struct {
	Health load.Health `json:"health"`
	Window load.Window `json:"window"`
	load.Summary
}

// Coverage counts the faults of one name: planned ones, those that began, and those that had an effect.
type Coverage struct {
	Fault   string `json:"fault"`
	Planned int    `json:"planned"`
	Begun   int    `json:"begun"`
	Fired   int    `json:"fired"`
}

// Restarts describes the openings after each server's first. Most is the largest number in one minute, which began at
// MostAt.
type Restarts struct {
	All    int           `json:"all"`
	Most   int           `json:"mostPerMinute"`
	MostAt time.Duration `json:"mostAt"`
	// Attempts counts the servers by the number of their openings.
	Attempts []Attempts `json:"attempts"`
}

// Attempts is one column of the histogram of openings.
type Attempts struct {
	Openings string `json:"openings"`
	Servers  int    `json:"servers"`
}

// PoolUse is the highest use of one pool of the start gate, computed from what the servers saw.
type PoolUse struct {
	Pool   string        `json:"pool"`
	Most   int           `json:"most"`
	MostAt time.Duration `json:"mostAt"`
	Limit  int           `json:"limit"`
}

// ServerFacts is one server in numbers.
type ServerFacts struct {
	Name  string                 `json:"name"`
	Group string                 `json:"group,omitempty"`
	Kind  messages.TransportKind `json:"kind,omitempty"`
	Era   messages.Era           `json:"era,omitempty"`
	// Faults counts the planned faults of this server, begun or not. Failed counts the calls that ended neither with a result
	// nor with a tool's own error, and those without an end.
	Health   load.Health `json:"health"`
	Openings int         `json:"openings"`
	Faults   int         `json:"faults"`
	// Connected is the time in which it was connected.
	Connected time.Duration `json:"connected"`
	Calls     int           `json:"calls"`
	Failed    int           `json:"failed"`
}

// newDocument fills in the document. Lists without entries are empty and not null, for readers in other languages.
func (f *facts) newDocument() Document {
	h, r := f.run.History, f.run
	d := Document{
		Version: Version, Tool: supervisor.Version(), Scenario: oneLine(h.Plan.Scenario.Name),
		About: oneLine(h.Plan.Scenario.About), Seed: h.Plan.Seed, Tier: h.Plan.Tier, Replay: replayCommand(r),
		Answer: Overall(r.Verdicts), Summary: summaryText(&r), Took: r.Took, Lasted: runLength(h),
		Broken: f.bounds.Broken, Healed: f.bounds.Healed, Events: len(h.Events),
		Verdicts: []VerdictReport{}, Coverage: f.faultCoverage(), Latencies: []Latency{}, Gate: []PoolUse{}, Servers: []ServerFacts{},
	}
	if r.Found != nil {
		d.Found = oneLine(r.Found.Command)
	}
	if !r.Started.IsZero() {
		started := r.Started.UTC()
		d.Started = &started
	}
	// Evidence names a line of history.jsonl, so that a reader can go from the verdict to the event with an editor.
	lines := f.eventLines()
	for _, v := range r.Verdicts {
		j := VerdictReport{
			ID: oneLine(v.ID), Title: oneLine(v.Title), Answer: v.Answer, Why: messages.Line(v.Why, 2000), Before: messages.Line(v.Before, 2000), Server: oneLine(v.Server),
			At: v.At, Looked: v.Looked,
		}
		for _, i := range v.Evidence {
			// A verdict of another version may point beyond a history that was cut.
			if i < 0 || i >= len(h.Events) {
				continue
			}
			e := &h.Events[i]
			j.Evidence = append(j.Evidence, Evidence{lines[i], e.T, oneLine(e.Server), string(e.Side), describeEvent(e).String()})
		}
		d.Verdicts = append(d.Verdicts, j)
	}
	for _, health := range load.Healths {
		for _, w := range load.Windows {
			if c := f.load.Group(health, w); c != nil {
				d.Latencies = append(d.Latencies, Latency{health, w, c.Summary()})
			}
		}
	}
	d.Restarts.All = len(f.restarts)
	d.Restarts.Most, d.Restarts.MostAt = busiestMinute(f.restarts)
	for i, n := range f.attemptCounts() {
		d.Restarts.Attempts = append(d.Restarts.Attempts, Attempts{attemptBins[i].Label, n})
	}
	// A pool that is neither bounded nor used says nothing; a bounded one that was never used shows 0.
	for p := range pools {
		if limit := limitOf(h.Plan, p); limit > 0 || len(f.gate[p]) > 0 {
			top, at := highestCount(f.gate[p])
			d.Gate = append(d.Gate, PoolUse{poolNames[p], top, at, limit})
		}
	}
	for _, s := range f.servers {
		d.Servers = append(d.Servers, f.serverFacts(s))
	}
	return d
}

// serverFacts returns the numbers of one server.
func (f *facts) serverFacts(s server) ServerFacts {
	sum := f.load.ServerTotal(s.Name).Summary()
	return ServerFacts{
		Name: oneLine(s.Name), Group: oneLine(s.Group), Kind: s.Kind, Era: s.Era, Health: f.load.HealthOf(s.Name),
		Openings: len(s.openings), Faults: len(s.faults), Connected: timePerState(s.bands, f.end)[connected], Calls: sum.Calls,
		Failed: sum.Failed(),
	}
}

// eventLines maps the index of each event to its line in history.jsonl, where the plan and a count from 1 come before.
func (f *facts) eventLines() []int {
	out := make([]int, len(f.run.History.Events))
	for n, i := range f.run.History.Index().Order() {
		out[i] = n + 2
	}
	return out
}

// faultCoverage counts the faults by name, in the order in which the plan names them first.
func (f *facts) faultCoverage() []Coverage {
	out := []Coverage{}
	at := map[string]int{}
	for _, x := range f.faults {
		i, ok := at[x.Fault]
		if !ok {
			i = len(out)
			at[x.Fault] = i
			out = append(out, Coverage{Fault: oneLine(x.Fault)})
		}
		out[i].Planned++
		if x.On >= 0 {
			out[i].Begun++
		}
		if x.Fired > 0 {
			out[i].Fired++
		}
	}
	return out
}

// encodeJSON returns indented JSON with a newline at the end, for people who read it and for diff.
func (d Document) encodeJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(d)
	return b.Bytes(), err
}

// seedText returns the content of the file seed.
func seedText(seed uint64) []byte { return []byte(strconv.FormatUint(seed, 10) + "\n") }
