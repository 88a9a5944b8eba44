package score

import (
	"fmt"
	"strings"
)

// Point is one behaviour that is expected of the client.
type Point struct {
	Must string `json:"must"`
	Got  bool   `json:"got"`
	// Seen describes what the client did instead, empty if it got the point.
	Seen string `json:"seen,omitempty"`
}

// CaseResult holds the points of one case. TookMs is its duration in milliseconds.
type CaseResult struct {
	Number int     `json:"number"`
	Name   string  `json:"name"`
	Points []Point `json:"points"`
	TookMs int64   `json:"tookMs"`
	// With are the numbers of the cases that were played in the same client at the same time, nil if it had the client for itself.
	With []int `json:"with,omitempty"`
}

// Got returns the number of points that the client got.
func (p CaseResult) Got() (n int) {
	for _, point := range p.Points {
		if point.Got {
			n++
		}
	}
	return n
}

// MaxPoints returns the number of points that there were.
func (p CaseResult) MaxPoints() int { return len(p.Points) }

// Lost returns the reasons for the points that the client did not get.
func (p CaseResult) Lost() (reasons []string) {
	for _, point := range p.Points {
		if !point.Got {
			reasons = append(reasons, fmt.Sprintf("%s: %s", point.Must, point.Seen))
		}
	}
	return reasons
}

// Result holds the results of all cases for one client.
type Result struct {
	// Name is the client's name in a table, About its own description of version and options.
	Name  string       `json:"name"`
	About string       `json:"about"`
	Cases []CaseResult `json:"cases"`
	// Failed says why no case was played, empty if cases were.
	Failed string `json:"failed,omitempty"`
}

// Got returns the sum of the points.
func (r Result) Got() (n int) {
	for _, c := range r.Cases {
		n += c.Got()
	}
	return n
}

// MaxPoints returns the sum of the points that there were.
func (r Result) MaxPoints() (n int) {
	for _, c := range r.Cases {
		n += c.MaxPoints()
	}
	return n
}

// NameApart gives results with the same name longer ones, because two versions of one client begin their description alike.
func NameApart(results []Result) {
	taken, seen := map[string]int{}, map[string]int{}
	for _, r := range results {
		taken[r.Name]++
	}
	for i := range results {
		r := &results[i]
		if taken[r.Name] > 1 && r.Failed == "" {
			r.Name = strings.TrimSpace(r.About[:strings.IndexAny(r.About+";", ";,")])
		}
		if seen[r.Name]++; seen[r.Name] > 1 {
			r.Name = fmt.Sprintf("%s (%d)", r.Name, seen[r.Name])
		}
	}
}

// Sum returns the points and their maximum, or a dash if no case was played.
func (r Result) Sum() string {
	if r.Failed != "" {
		return "–"
	}
	return fmt.Sprintf("%d/%d", r.Got(), r.MaxPoints())
}

// Markdown returns the table of several clients, with the reason for every lost point. It holds no times and dates, so that
// runs with equal results give equal texts.
func Markdown(results []Result, command string) string {
	var b strings.Builder
	b.WriteString("# What MCP clients do on a bad day\n\nMade by `" + command + "`, which anybody can run.\n\n")
	for _, r := range results {
		about := r.About
		if r.Failed != "" {
			about = "not played: " + r.Failed
		}
		fmt.Fprintf(&b, "- **%s**: %s\n", escapeCell(r.Name), escapeCell(about))
	}
	b.WriteString("\n" + fairNote + "\n\n| # | case | over |")
	for _, r := range results {
		b.WriteString(" " + escapeCell(r.Name) + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(results)) + "\n")
	for _, c := range Cases() {
		fmt.Fprintf(&b, "| %d | %s | %s |", c.Number, escapeCell(c.Name), c.Over)
		for _, r := range results {
			b.WriteString(" " + r.pointsCell(c.Number) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("| | **all** | |")
	for _, r := range results {
		fmt.Fprintf(&b, " **%s** |", r.Sum())
	}
	b.WriteString("\n\n## The stories, and where points were lost\n")
	for _, c := range Cases() {
		fmt.Fprintf(&b, "\n### %d. %s\n\n%s", c.Number, escapeCell(c.Name), escapeCell(c.Story))
		if len(c.Faults) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(c.Faults, ", "))
		}
		b.WriteString("\n")
		// A Markdown list needs an empty line before it.
		between := "\n"
		for _, r := range results {
			for _, p := range r.Cases {
				if p.Number == c.Number && p.Got() < p.MaxPoints() {
					fmt.Fprintf(&b, "%s- %s: %s\n", between, escapeCell(r.Name), escapeCell(strings.Join(p.Lost(), "; ")))
					between = ""
				}
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// fairNote stands above every table.
const fairNote = `Each case is worth a point for each thing that must be seen. A bare client library is one connection to one server: it does
not claim to restart a process, to keep sixty servers apart, to filter an environment or to end what is left when its
program is killed, and says so or says nothing. Points that it does not get there are work for the program around it, not
defects. The adapters give the libraries what their documentation shows: a deadline for every request, health checks, and
a new connection at the next use of one that was lost, which never sends a call twice. The cases come from what users of
many clients reported, and are those that mcpvisor was built against: it is expected to win them, and a point that it loses
is a defect of it.`

// pointsCell returns the cell of one case, a dash if the case was not played.
func (r Result) pointsCell(number int) string {
	for _, c := range r.Cases {
		if c.Number == number {
			return fmt.Sprintf("%d/%d", c.Got(), c.MaxPoints())
		}
	}
	return "–"
}

// escapeCell escapes a text for a cell of a table.
func escapeCell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(s)
}
