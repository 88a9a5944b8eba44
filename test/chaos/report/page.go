package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

//go:embed page
var pageFiles embed.FS

// scripts lists the parts of the page's own script in their order. They share one scope, and later parts use the
// earlier ones.
var scripts = []string{
	"data.js", "time.js", "paint.js", "fleet.js", "rows.js", "lanes.js", "charts.js", "panel.js", "page.js",
}

// page holds the values for the template of the page.
type page struct {
	Document
	// Policy is the Content-Security-Policy: the browser runs the page's own script and style, by their hashes, and
	// loads nothing.
	Policy string
	Style  template.CSS
	Script template.JS
	Data   template.JS

	Word, Mark     string
	Facts          []string
	Violated, Open []pageRow
	Held           []pageRow
	Scale          []pageTick
	Rows           []pageLatency
	Bound          string
	// Columns holds the histogram of openings without the empty columns at its ends, Most the largest number of servers
	// in one.
	Columns []Attempts
	Most    int
	// Day is the text of the scenario of a run that violates something, if a reader takes it in at one look.
	Day string
}

// maxDayLines bounds the lines of a scenario that the page shows; a longer one is read in its file.
const maxDayLines = 60

// pageRow is a verdict with its index, by which the script refers to it.
type pageRow struct {
	VerdictReport
	Place int
	When  string
}

// pageTick is a line of the scale of latencies, X in percent of its width.
type pageTick struct{ X, Label string }

// pageLatency is a line of the table of latencies with a picture: positions in percent.
type pageLatency struct {
	Latency
	X50, X90, X99, X999, XMax, Length string
	// Limit is the position of 1.5 × baseline + 5 ms, the bound of the invariant; empty if the line is not judged by
	// it.
	Limit string
}

// sideWords are the words for who saw an event, where the word of the history would not be understood.
var sideWords = map[history.Side]string{history.World: "server", history.Harness: "simulation"}

// renderHTML returns a function that writes the page.
func (f *facts) renderHTML(d Document) func(io.Writer) error {
	return func(w io.Writer) error {
		p, err := f.newPage(d)
		if err != nil {
			return err
		}
		t, err := template.New("page.html").Funcs(template.FuncMap{
			"who": func(side string) string { return cmp.Or(sideWords[history.Side(side)], side) }, "clock": clockText, "short": shortLatency, "thousands": withCommas, "count": countOf,
			"percent": func(part, whole int) string {
				if whole == 0 {
					return "0"
				}
				return strconv.Itoa(100 * part / whole)
			},
		}).ParseFS(pageFiles, "page/page.html")
		if err != nil {
			return err
		}
		return t.Execute(w, p)
	}
}

// newPage fills in the values for the template.
func (f *facts) newPage(d Document) (*page, error) {
	data, err := json.Marshal(f.newPageData())
	if err != nil {
		return nil, err
	}
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return nil, err
	}
	var script strings.Builder
	// One scope around all parts keeps their names out of the page's global object; the hash in the policy covers the whole
	// text.
	script.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		part, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return nil, err
		}
		script.Write(part)
	}
	script.WriteString("})();\n")
	p := &page{
		Document: d, Style: template.CSS(style), Script: template.JS(script.String()),
		// json.Marshal escapes <, > and &, so that no text can end the script element.
		Data: template.JS(data),
		Word: Word(f.run.Verdicts), Mark: answerMarks[d.Answer], Facts: f.headFacts(d),
	}
	if text := f.run.History.Plan.Scenario.YAML(); d.Answer == invariant.Violated && bytes.Count(text, []byte("\n")) <= maxDayLines {
		p.Day = string(text)
	}
	p.Policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		cspHash(string(p.Style)), cspHash(string(p.Script)))
	for i, v := range d.Verdicts {
		row := pageRow{v, i, ""}
		if v.Server != "" || v.At != 0 {
			row.When = clockText(v.At)
		}
		switch v.Answer {
		case invariant.Violated:
			p.Violated = append(p.Violated, row)
		case invariant.Inconclusive:
			p.Open = append(p.Open, row)
		case invariant.Holds:
			p.Held = append(p.Held, row)
		}
	}
	slices.SortStableFunc(p.Violated, func(a, b pageRow) int {
		return f.run.compareViolations(f.run.Verdicts[a.Place], f.run.Verdicts[b.Place])
	})
	p.fillLatencies()
	p.fillAttempts()
	return p, nil
}

// fillAttempts removes the empty columns at both ends of the histogram.
func (p *page) fillAttempts() {
	from, to := len(p.Restarts.Attempts), 0
	for i, a := range p.Restarts.Attempts {
		if a.Servers > 0 {
			from, to = min(from, i), i+1
			p.Most = max(p.Most, a.Servers)
		}
	}
	if from < to {
		p.Columns = p.Restarts.Attempts[from:to]
	}
}

// answerMarks are shapes that distinguish the answers without colour.
var answerMarks = map[invariant.Answer]string{
	invariant.Holds: "✓", invariant.Violated: "✗", invariant.Inconclusive: "?",
}

// cspHash returns the hash by which a Content-Security-Policy allows an inline element.
func cspHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// headFacts returns the facts about the run in the head of the page.
func (f *facts) headFacts(d Document) []string {
	out := []string{
		"seed " + strconv.FormatUint(d.Seed, 10), map[bool]string{true: "real processes and sockets", false: "simulation"}[d.Tier == scenario.Real],
		countOf(len(f.run.History.Plan.Servers), "server"), countOf(len(f.faults), "fault"), countOf(d.Events, "event"), lengthText(f.run),
	}
	if text := foundText(f.run); text != "" {
		out = append(out, text)
	}
	if d.Started != nil {
		out = append(out, d.Started.Format("2006-01-02 15:04 UTC"))
	}
	return append(out, "mcpvisor "+d.Tool)
}

// fillLatencies places the percentiles on one logarithmic scale, whose ends are powers of ten around all values.
func (p *page) fillLatencies() {
	low, high := time.Duration(math.MaxInt64), time.Duration(0)
	var before time.Duration
	for _, l := range p.Latencies {
		if l.Recorded > 0 {
			low, high = min(low, l.P50), max(high, l.Max)
		}
		if l.Health == load.Healthy && l.Window == load.Before {
			before = l.P99
		}
	}
	// The healthy servers may be this slow while others are broken.
	bound := before*3/2 + 5*time.Millisecond
	if before > 0 {
		high = max(high, bound)
	}
	if high == 0 {
		low, high = time.Millisecond, time.Second
	}
	// A logarithm has no place for 0, which a latency in virtual time may be.
	low = max(low, time.Microsecond)
	from, to := math.Floor(math.Log10(float64(low))), math.Ceil(math.Log10(float64(high)))
	if to <= from {
		to = from + 1
	}
	place := func(d time.Duration) float64 {
		return 100 * (math.Log10(float64(max(d, 1))) - from) / (to - from)
	}
	x := func(d time.Duration) string { return strconv.FormatFloat(min(max(place(d), 0), 100), 'f', 2, 64) + "%" }
	for e := from; e <= to; e++ {
		d := time.Duration(math.Pow(10, e))
		p.Scale = append(p.Scale, pageTick{x(d), shortLatency(d)})
	}
	for _, l := range p.Latencies {
		row := pageLatency{Latency: l, X50: x(l.P50), X90: x(l.P90), X99: x(l.P99), X999: x(l.P999), XMax: x(l.Max)}
		row.Length = strconv.FormatFloat(max(place(l.Max)-place(l.P50), 0), 'f', 2, 64) + "%"
		// Only healthy servers while others are broken are held to the bound; without a latency from before there is nothing to
		// compare.
		if before > 0 && l.Health == load.Healthy && l.Window != load.Before {
			row.Limit = x(bound)
			p.Bound = shortLatency(bound)
		}
		p.Rows = append(p.Rows, row)
	}
}
