package up

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/messages"
)

// frame is one picture of a run of up: what is shown, when, and how much room there is. renderLines is a pure function of it,
// so that tests need neither a terminal nor a clock.
type frame struct {
	// board is read only; the goroutine that draws holds it for the time of one frame.
	board *board
	now   time.Time
	// head and foot are the lines above and below the table; they are cut to the width.
	head, foot []string
	// intro is a text between head and table. It is shown whole, or not at all if there is no room for it.
	intro string
	// width and height are those of the terminal in characters; 0 means unbounded, as for a pipe.
	width, height int
	coloured      bool
}

// recentShown is the number of last events shown below the table where there is room, recentLeast the number where there is
// little.
const recentShown, recentLeast = 10, 3

// renderLines returns the lines of the picture: none wider than the width, and no more of them than the height. If there is not
// room for everything, the intro goes first, then older events, then rows of connected servers, then other rows.
func (f *frame) renderLines() []string {
	rows, intro := f.tableLines(), f.introLines()
	news := min(recentShown, len(f.board.recent))
	if f.height > 0 {
		// Three empty lines stand around the table and below the events.
		rest := f.height - len(f.head) - len(f.foot) - 3
		// Events get at most a quarter of a small terminal; rows of servers matter more.
		least := min(recentLeast, news, max(rest/4, 0))
		if len(intro)+len(rows)+least > rest {
			intro = nil
		}
		news = max(min(news, rest-len(intro)-len(rows)), least)
		rows = f.fitRows(rows, rest-len(intro)-news)
	}
	out := slices.Concat(f.head, intro, []string{""}, rows, []string{""})
	for _, h := range f.board.recent[len(f.board.recent)-news:] {
		out = append(out, f.formatEvent(h))
	}
	if news > 0 && len(f.foot) > 0 {
		out = append(out, "")
	}
	out = append(out, f.foot...)
	if f.height > 0 && len(out) > f.height {
		// A terminal that is lower than head and foot together gets the top of the picture.
		out = out[:f.height]
	}
	for i := range out {
		out[i] = f.cutLine(out[i])
	}
	return out
}

// introLines returns the intro wrapped to the width (120 if unbounded, at least 20), with an empty line in front.
func (f *frame) introLines() []string {
	if f.intro == "" {
		return nil
	}
	width := f.width
	if width <= 0 {
		width = 120
	}
	return append([]string{""}, strings.Split(text.WrapSoft(f.intro, max(width, 20)), "\n")...)
}

// cutLine cuts a line to the width, and counts no escape sequences. The library ends a colour that the cut leaves open.
func (f *frame) cutLine(line string) string {
	if f.width > 0 && text.StringWidthWithoutEscSequences(line) > f.width {
		line = text.Snip(line, f.width, "…")
	}
	return strings.TrimRight(line, " ")
}

// fitRows leaves out the rows that do not fit into most lines, and adds a line that says how many are missing. Connected
// servers are left out first, because the person has to act on the others.
func (f *frame) fitRows(rows []string, most int) []string {
	if len(rows) <= most {
		return rows
	}
	room := max(most-2, 1) // the header, and the line that says how many are missing
	names := f.board.serverNames()
	keep := make([]bool, len(names))
	kept := 0
	// The first pass keeps servers that are not connected, the second fills up with connected ones; both in the order of the
	// table.
	for _, connected := range []bool{false, true} {
		for i, name := range names {
			if kept < room && connected == (f.board.servers[name].status.Status == messages.Connected) {
				keep[i], kept = true, kept+1
			}
		}
	}
	out := rows[:1:1]
	// connected stays true if every row that is left out belongs to a connected server; the last line says so.
	connected := true
	for i, name := range names {
		if keep[i] {
			out = append(out, rows[i+1])
		} else if f.board.servers[name].status.Status != messages.Connected {
			connected = false
		}
	}
	word := "more"
	if connected {
		word = "more, connected"
	}
	return append(out, fmt.Sprintf("… %d %s; mcpvisor list shows all", len(names)-kept, word))
}

// formatEvent formats one event with its time. Server names are padded to one width so that the texts begin in one column.
func (f *frame) formatEvent(h eventLine) string {
	at := f.paintText(text.Colors{text.Faint}, h.at.Local().Format(time.TimeOnly))
	if h.server == "" {
		return at + "  " + messages.Line(h.text, 0)
	}
	server := text.Snip(messages.Line(h.server, 0), f.maxServerWidth(), "…")
	fill := strings.Repeat(" ", max(0, f.serverWidth()-text.StringWidthWithoutEscSequences(server)))
	return at + "  " + f.paintText(status.ColourOf(h.phase), server) + fill + "  " + messages.Line(h.text, 0)
}

// serverWidth returns the width of the widest name on the board, at most maxServerWidth.
func (f *frame) serverWidth() int {
	w := 0
	for name := range f.board.servers {
		w = max(w, text.StringWidthWithoutEscSequences(messages.Line(name, 0)))
	}
	return min(w, f.maxServerWidth())
}

// maxServerWidth returns the widest that names may be: a third of the terminal, between 12 and 40 columns.
func (f *frame) maxServerWidth() int {
	if f.width <= 0 {
		return 40
	}
	return min(max(f.width/3, 12), 40)
}

// paintText colours s if the frame is coloured. Empty texts get no escape sequences.
func (f *frame) paintText(colours text.Colors, s string) string {
	if !f.coloured || colours == nil || s == "" {
		return s
	}
	return colours.EscapeSeq() + s + text.Reset.EscapeSeq()
}

// column is one column of the table, which tableLines may drop or narrow.
type column struct {
	title string
	// cells holds one text for each server, unpainted, since escape sequences would count as width. colours paints the cell of
	// a row; nil leaves it plain.
	cells   []string
	colours func(r *row) text.Colors
	right   bool
	// least is the width that the column has even if its cells need less, so that the table does not jump when a phase changes.
	// most is the greatest width, 0 for any.
	least, most int
	// rank says which columns are dropped on a narrow terminal: the highest rank first; a column with rank 0 never.
	rank int
}

// cellWidth returns the width that the column takes: that of its widest cell or title, within least and most.
func (c *column) cellWidth() int {
	w := max(c.least, text.StringWidthWithoutEscSequences(c.title))
	for _, cell := range c.cells {
		w = max(w, text.StringWidthWithoutEscSequences(cell))
	}
	if c.most > 0 {
		w = min(w, c.most)
	}
	return w
}

// errorLeast is the least width of the column of errors, in characters; below it a text says nothing.
const errorLeast = 16

// tableLines returns the header and one line for each server. On a narrow terminal it drops columns by rank, then narrows the
// errors, and only then cuts the names, without which a row is useless.
func (f *frame) tableLines() []string {
	columns := f.allColumns()
	const gap = 2
	need := func() int {
		n := -gap
		for _, c := range columns {
			n += c.cellWidth() + gap
		}
		return n
	}
	if f.width > 0 {
		// The last column holds the errors. It is measured at its least width while columns are dropped, and then takes the
		// rest.
		last := columns[len(columns)-1]
		last.most = errorLeast
		for need() > f.width {
			at := -1
			for i, c := range columns {
				if c.rank > 0 && (at < 0 || c.rank > columns[at].rank) {
					at = i
				}
			}
			if at < 0 {
				break
			}
			columns = append(columns[:at:at], columns[at+1:]...)
		}
		if columns[len(columns)-1] == last {
			last.most = 0
			last.most = max(last.cellWidth()-max(need()-f.width, 0), errorLeast)
		}
		// Still too wide with only the columns that never go: the names give way, to at least four characters.
		if over := need() - f.width; over > 0 {
			columns[0].most = max(columns[0].cellWidth()-over, 4)
		}
	}

	names := f.board.serverNames()
	lines := make([]string, 1+len(names))
	for i, c := range columns {
		w := c.cellWidth()
		for j := range lines {
			cell, colours := c.title, text.Colors{text.Bold}
			if j > 0 {
				if cell, colours = c.cells[j-1], nil; c.colours != nil {
					colours = c.colours(f.board.servers[names[j-1]])
				}
			}
			if text.StringWidthWithoutEscSequences(cell) > w {
				cell = text.Snip(cell, w, "…")
			}
			fill := strings.Repeat(" ", w-text.StringWidthWithoutEscSequences(cell))
			if cell = f.paintText(colours, cell); c.right {
				cell = fill + cell
			} else {
				cell += fill
			}
			if i > 0 {
				lines[j] += strings.Repeat(" ", gap)
			}
			lines[j] += cell
		}
	}
	for j := range lines {
		lines[j] = strings.TrimRight(lines[j], " ")
	}
	return lines
}

// allColumns returns every column with its cells, in the order of the picture; the errors come last. The columns of calls
// appear with the first call: before it they would hold only zeros and take room from the errors.
func (f *frame) allColumns() []*column {
	server := &column{title: "SERVER", most: f.maxServerWidth()}
	phase := &column{title: "STATUS", least: len(messages.NeedsAuth), colours: func(r *row) text.Colors {
		_, colours := status.PhaseOf(r.status)
		return colours
	}}
	transport := &column{title: "TRANSPORT", rank: 9}
	tools := &column{title: "TOOLS", right: true, rank: 3}
	restarts := &column{title: "RESTARTS", right: true, rank: 2}
	next := &column{title: "NEXT ATTEMPT", rank: 1}
	results := &column{title: "RESULTS", right: true, rank: 6}
	notSent := &column{title: "NOT SENT", right: true, rank: 5}
	unknown := &column{title: "UNKNOWN", right: true, rank: 4}
	last := &column{title: "LAST ERROR", rank: 7, colours: func(r *row) text.Colors {
		if r.status.Error == "" {
			return text.Colors{text.Faint} // the error of an attempt that is over
		}
		return nil
	}}
	for _, name := range f.board.serverNames() {
		r := f.board.servers[name]
		st := &r.status
		server.cells = append(server.cells, messages.Line(name, 0))
		word, _ := status.PhaseOf(*st)
		phase.cells = append(phase.cells, word)
		transport.cells = append(transport.cells, string(st.Transport))
		count := ""
		// A connected server, and one that is idle until a call needs it, has a known catalog; for others the number would be
		// stale.
		if st.Status == messages.Connected || st.Step == messages.Idle {
			count = fmt.Sprint(r.tools)
		}
		tools.cells = append(tools.cells, count)
		restarts.cells = append(restarts.cells, fmt.Sprint(st.Restarts))
		next.cells = append(next.cells, nextOf(st, f.now))
		answered := r.calls
		results.cells = append(results.cells, fmt.Sprint(answered.results+answered.toolErrors+answered.rejected))
		notSent.cells = append(notSent.cells, fmt.Sprint(answered.notSent))
		unknown.cells = append(unknown.cells, fmt.Sprint(answered.unknown))
		text := messages.Line(r.lastError, 300)
		if st.Status == messages.Connected && len(st.ChangedTools) > 0 { // a changed tool is newer than the last error, which is over
			text = status.ChangedText(*st)
		}
		last.cells = append(last.cells, text)
	}
	all := []*column{server, phase, transport, tools, restarts, next}
	if c := f.board.totalCalls(); c.total() > 0 {
		all = append(all, results, notSent, unknown)
	}
	return append(all, last)
}

// nextOf says when a server that is not connected is tried again, or which step of connecting it is in.
func nextOf(st *messages.Status, now time.Time) string {
	word := "in "
	switch {
	case st.Status == messages.Connected, st.Status == messages.Disabled:
		return ""
	case st.Retry == messages.RetryNever, st.Status == messages.NeedsAuth:
		return "not by itself"
	case st.Step == messages.Installing:
		return st.Reason // the reason has the name of the program that installs
	case st.Status == messages.Pending && st.Step != messages.Restarting:
		return string(st.Step)
	case st.NextAttempt == nil:
		return ""
	case st.Retry == messages.RetryParked:
		word = "probe in "
	}
	d := st.NextAttempt.Sub(now)
	if d <= 0 {
		return "now"
	}
	return word + countdownText(d)
}

// countdownText formats a duration for a countdown. It rounds up, so that the last text before the end is "1s", never "0s".
func countdownText(d time.Duration) string {
	s := int((d + time.Second - 1) / time.Second)
	if s < 60 {
		return fmt.Sprintf("%ds", s)
	}
	return fmt.Sprintf("%dm%02ds", s/60, s%60)
}
