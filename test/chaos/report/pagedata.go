package report

import (
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// pageData is the data of the page's script. Times are in microseconds since the start of the run, strings that occur
// more than once are interned, and lists of numbers stand in one flat array each, because a page may hold a hundred
// thousand events.
type pageData struct {
	End    int64 `json:"end"`
	Broken int64 `json:"broken"`
	Healed int64 `json:"healed"`
	// Whats holds pairs of side and sentence, which events share; Words holds all other strings.
	Whats [][2]any `json:"whats"`
	Words []string `json:"words"`
	// Servers is sorted by name. The last one stands for the manager and the machine.
	Servers  []pageServer  `json:"servers"`
	Faults   []pageFault   `json:"faults"`
	Verdicts []pageVerdict `json:"verdicts"`
	Gate     []pagePool    `json:"gate"`
	Restarts pageColumns   `json:"restarts"`
	// Latency maps healthy and faulty to their series.
	Latency map[load.Health]*latencySeries `json:"latency"`
}

// pageServer is one lane of the page. The manager and the machine have a lane without a kind, openings and load.
type pageServer struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Era   string `json:"era"`
	// Faulty is 1 if the plan breaks the server.
	Faulty int `json:"faulty"`
	// Bands holds the states, each as a letter and, to base 36, the milliseconds since the one before. Bands shorter
	// than Grain, in milliseconds, may have been dropped; 0 if all are there.
	Bands string `json:"bands"`
	Grain int64  `json:"grain,omitempty"`
	// Opens holds the openings after the first: milliseconds since the one before, to base 36, separated by blanks.
	Opens string `json:"opens"`
	// Load holds for each window calls, failed, p50, p90, p99 and max.
	Load [][]int64 `json:"load,omitempty"`
	// Events is flat: time since the one before, what, connection, ref, text. All counts the events of the history,
	// also those that were left out.
	Events []int64 `json:"events"`
	All    int     `json:"all"`
}

// pageFault is flat: id, name, server or -1 for the machine, begin, end, fired.
type pageFault [6]int64

// pageVerdict says where on the page a verdict points; its words stand in the page's HTML already.
type pageVerdict struct {
	ID     string `json:"id"`
	Server int    `json:"server"` // -1: none
	At     int64  `json:"at"`
	// Events holds pairs of a server and the index among its events on the page.
	Events [][2]int `json:"events"`
}

// pagePool is the use of one pool of the start gate over time. Limit is 0 if the plan has none.
type pagePool struct {
	Name  string `json:"name"`
	Limit int    `json:"limit"`
	Most  int    `json:"most"`
	Steps steps  `json:"steps"`
}

// pageColumns is a histogram over time: each column is Width microseconds wide.
type pageColumns struct {
	Width  int64 `json:"width"`
	Counts []int `json:"counts"`
}

// pageBuilder interns strings while it makes a pageData.
type pageBuilder struct {
	f     *facts
	out   pageData
	whats map[[2]string]int64
	words map[string]int64
	// serverIndex maps the name of a server to its index in out.Servers.
	serverIndex map[string]int
	// evidence holds the indexes of events that some verdict has as evidence; shown maps those on the page to their
	// server and index.
	evidence map[int]bool
	shown    map[int][2]int
}

// newPageData makes the data of the page. Servers come before faults and verdicts, which refer to them by index.
func (f *facts) newPageData() pageData {
	m := &pageBuilder{f: f, whats: map[[2]string]int64{}, words: map[string]int64{}, serverIndex: map[string]int{},
		evidence: map[int]bool{}, shown: map[int][2]int{}}
	// The script counts on lists: a day without faults has an empty one.
	m.out.Faults, m.out.Verdicts, m.out.Gate, m.out.Whats = []pageFault{}, []pageVerdict{}, []pagePool{}, [][2]any{}
	// The empty word gets the number 0, which the script takes for no text.
	m.internWord("")
	m.out.End, m.out.Broken, m.out.Healed = f.end.Microseconds(), f.bounds.Broken.Microseconds(), f.bounds.Healed.Microseconds()
	// The evidence is known before the servers are added, because selectEvents must not leave it out.
	for _, v := range f.run.Verdicts {
		for _, i := range v.Evidence {
			m.evidence[i] = true
		}
	}
	room := capOf(len(f.servers))
	for _, s := range f.servers {
		m.addServer(s, room)
	}
	m.addServer(server{events: f.run.History.Index().ServerEvents("")}, Cap)
	for _, x := range f.faults {
		m.addFault(x)
	}
	m.addVerdicts()
	for p := range pools {
		if limit := limitOf(f.run.History.Plan, p); len(f.gate[p]) > 0 {
			top, _ := highestCount(f.gate[p])
			m.out.Gate = append(m.out.Gate, pagePool{poolNames[p], limit, top, stepsOf(f.gate[p], f.end)})
		}
	}
	width := columnWidth(f.end)
	m.out.Restarts = pageColumns{width.Microseconds(), countPerColumn(f.restarts, width, f.end)}
	m.out.Latency = latencyByHealth(f.run.History, f.load, f.end)
	return m.out
}

// internWord returns the index of a string in Words, and adds it at its first use.
func (m *pageBuilder) internWord(s string) int64 {
	n, ok := m.words[s]
	if !ok {
		n = int64(len(m.out.Words))
		m.words[s] = n
		m.out.Words = append(m.out.Words, s)
	}
	return n
}

// internSentence returns the index of a sentence of one side in Whats, and adds it at its first use.
func (m *pageBuilder) internSentence(side history.Side, text string) int64 {
	key := [2]string{string(side), text}
	n, ok := m.whats[key]
	if !ok {
		n = int64(len(m.out.Whats))
		m.whats[key] = n
		m.out.Whats = append(m.out.Whats, [2]any{oneLine(string(side)), text})
	}
	return n
}

// addServer adds a server with at most room of its events, and notes where pieces of evidence stand.
func (m *pageBuilder) addServer(s server, room int) {
	h := m.f.run.History
	at := len(m.out.Servers)
	m.serverIndex[s.Name] = at
	p := pageServer{
		Name: oneLine(s.Name), Group: oneLine(s.Group), Kind: oneLine(string(s.Kind)), Era: oneLine(string(s.Era)), All: len(s.events),
	}
	if m.f.load.HealthOf(s.Name) == load.Faulty {
		p.Faulty = 1
	}
	bands, short := joinShortBands(s.bands, maxBands, m.f.end)
	p.Grain = short.Milliseconds()
	p.Bands = bandText(bands)
	p.Opens = openingText(s.openings)
	for _, w := range load.Windows {
		sum := m.f.load.Server(s.Name, w).Summary()
		p.Load = append(p.Load, []int64{int64(sum.Calls), int64(sum.Failed()), sum.P50.Microseconds(),
			sum.P90.Microseconds(), sum.P99.Microseconds(), sum.Max.Microseconds()})
	}
	last := int64(0)
	for n, i := range selectEvents(h, s.events, m.evidence, room) {
		e := &h.Events[i]
		t := describeEvent(e)
		now := e.T.Microseconds()
		p.Events = append(p.Events, now-last, m.internSentence(e.Side, t.what), int64(t.conn), m.internWord(t.ref), m.internWord(t.text))
		last = now
		if m.evidence[i] {
			m.shown[i] = [2]int{at, n}
		}
	}
	m.out.Servers = append(m.out.Servers, p)
}

// maxBands bounds the bands of one server on the page, above the number of columns of a wide screen.
const maxBands = 1500

// bandText writes bands in the form of pageServer.Bands.
func bandText(bands []band) string {
	var b strings.Builder
	last := int64(0)
	for _, x := range bands {
		now := x.begin.Milliseconds()
		b.WriteByte(byte(x.state))
		b.WriteString(strconv.FormatInt(now-last, 36))
		last = now
	}
	return b.String()
}

// openingText writes openings in the form of pageServer.Opens.
func openingText(openings []opening) string {
	var parts []string
	last := int64(0)
	for i, o := range openings {
		if i == 0 {
			continue
		}
		now := o.at.Milliseconds()
		parts = append(parts, strconv.FormatInt(now-last, 36))
		last = now
	}
	return strings.Join(parts, " ")
}

// addFault adds a fault at its real times, or at the planned ones if it never began or ended.
func (m *pageBuilder) addFault(x fault) {
	// A fault of the whole machine, or of a server that is not on the page, is drawn over all lanes.
	at := -1
	if x.Server != "" {
		if place, ok := m.serverIndex[x.Server]; ok {
			at = place
		}
	}
	// An instant fault, and one that was cut off by the end of the run, has no end of its own.
	begin, end := x.Begin, x.End
	if x.On >= 0 {
		begin = x.On
	}
	if x.Off >= 0 {
		end = x.Off
	}
	m.out.Faults = append(m.out.Faults, pageFault{int64(x.ID), m.internWord(oneLine(x.Fault)), int64(at), begin.Microseconds(),
		max(end, begin).Microseconds(), int64(x.Fired)})
}

// addVerdicts adds the verdicts with the evidence that is on the page; it must come after all servers.
func (m *pageBuilder) addVerdicts() {
	for _, v := range m.f.run.Verdicts {
		p := pageVerdict{ID: oneLine(v.ID), Server: -1, At: v.At.Microseconds(), Events: [][2]int{}}
		if place, ok := m.serverIndex[v.Server]; ok && v.Server != "" {
			p.Server = place
		}
		for _, i := range v.Evidence {
			if at, ok := m.shown[i]; ok {
				p.Events = append(p.Events, at)
			}
		}
		m.out.Verdicts = append(m.out.Verdicts, p)
	}
}
