//go:build unix

package report_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
	"github.com/mcpvisor/mcpvisor/test/chromium"
)

const what = "the page of a report in a real browser"

// Keys as WebDriver names them.
const (
	enter, escape, left, up, right, down = "\uE007", "\uE00C", "\uE012", "\uE013", "\uE014", "\uE015"
)

// look writes a report, opens its page from the disk and returns the browser. Nothing may be loaded, and nothing complained of.
func look(t *testing.T, b *chromium.Browser, r report.Run) {
	t.Helper()
	b.Open("file://" + filepath.Join(written(t, r), "report.html"))
	settle(b)
	if loaded := b.Loaded(); len(loaded) > 0 {
		t.Errorf("the page loads %v", loaded)
	}
	quiet(t, b)
}

// settle waits until what was asked for is drawn.
func settle(b *chromium.Browser) {
	b.Devtools("Runtime.evaluate", map[string]any{"awaitPromise": true,
		"expression": "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"}, nil)
}

func quiet(t *testing.T, b *chromium.Browser) {
	t.Helper()
	for _, c := range b.Complaints() {
		t.Errorf("the console says %s", c)
	}
}

// picture keeps what the window shows, if PICTURES names a folder for it.
func picture(t *testing.T, b *chromium.Browser, name string) {
	t.Helper()
	if dir := os.Getenv("PICTURES"); dir != "" {
		settle(b)
		if err := os.WriteFile(filepath.Join(dir, name+".png"), b.Picture(), 0o600); err != nil {
			t.Error(err)
		}
	}
}

func str(b *chromium.Browser, script string, args ...any) (s string) {
	b.Run(&s, script, args...)
	return s
}

func num(b *chromium.Browser, script string, args ...any) (n float64) {
	b.Run(&n, script, args...)
	return n
}

// panelShows compares the events in the panel with the history's.
func panelShows(t *testing.T, b *chromium.Browser, r report.Run, server string) {
	t.Helper()
	settle(b)
	if got := str(b, "return document.getElementById('panel').hidden ? '' : document.getElementById('panel-title').textContent"); got != server {
		t.Fatalf("the panel is about %q, not %q", got, server)
	}
	var times, texts []string
	b.Run(&times, "return [...document.querySelectorAll('#events time')].map(e => e.textContent)")
	b.Run(&texts, "return [...document.querySelectorAll('#events .what')].map(e => e.textContent)")
	var want []history.Event
	for _, e := range r.History.Canonical() {
		if e.Server == server {
			want = append(want, e)
		}
	}
	said := str(b, "return document.querySelector('#panel .cap').textContent")
	if len(times) == len(want) {
		for i, e := range want {
			if times[i] != clockOf(e.T) {
				t.Fatalf("event %d stands at %s, it was at %v", i, times[i], e.T)
			}
		}
	} else if len(times) == 0 || len(times) > len(want) || !strings.Contains(said, fmt.Sprintf("%d of its", len(times))) {
		t.Fatalf("%d of %d events are shown, and %q is said", len(times), len(want), said)
	}
	if !slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, "connected epoch ") }) {
		t.Errorf("the events are %q", texts[:min(len(texts), 20)])
	}
}

// clockOf is a time as the page writes it.
func clockOf(d time.Duration) string {
	if d > 0 && d < time.Millisecond {
		return fmt.Sprintf("%dµs", int(math.Round(float64(d)/1000)))
	}
	return d.Round(time.Millisecond).String()
}

func TestThePageInABrowser(t *testing.T) {
	b := chromium.Start(t, what)
	for _, size := range []struct {
		servers int
		lasts   time.Duration
	}{{10, 20 * time.Minute}, {1000, 24 * time.Hour}} {
		t.Run(fmt.Sprint(size.servers), func(t *testing.T) {
			if size.servers > 100 && testing.Short() {
				t.Skip("a thousand servers take a while")
			}
			r := newDay(size.servers, size.lasts).run()
			b.Resize(1400, 1000)
			look(t, b, r)
			if got := str(b, "return document.querySelector('h1').textContent"); got != "a-bad-day" {
				t.Errorf("the title is %q", got)
			}
			// The page begins with the moment of the violation, and the rest looks at all of the day.
			b.Run(nil, "document.getElementById('reset').click()")
			settle(b)
			byMouse(t, b, r)
			byKeyboard(t, b, r)
			byFilters(t, b, r)
			toTheViolation(t, b, r)
			everyWidth(t, b, fmt.Sprint(size.servers))
			quiet(t, b)
		})
	}
}

// byMouse clicks on the name of the first row, and on the bands of the third.
func byMouse(t *testing.T, b *chromium.Browser, r report.Run) {
	b.Run(nil, "document.getElementById('lanes').scrollIntoView({block: 'end'})")
	settle(b)
	middle := func(row int) (name string, x, y int) {
		var at struct {
			Name string
			X, Y float64
		}
		b.Run(&at, `const e = [...document.querySelectorAll('.row')].sort((a, b) => a.offsetTop - b.offsetTop)[arguments[0]];
			const box = e.getBoundingClientRect();
			return {name: e.textContent.replace('✗', ''), x: box.left + box.width / 2, y: box.top + box.height / 2}`, row)
		return at.Name, int(at.X), int(at.Y)
	}
	name, x, y := middle(0)
	if name != r.Verdicts[6].Server {
		t.Errorf("the first row is %s, and the violation is on %s", name, r.Verdicts[6].Server)
	}
	b.Click(x, y)
	panelShows(t, b, r, name)
	picture(t, b, fmt.Sprint("panel-", len(r.History.Plan.Servers)))
	b.Press(escape)
	name, _, y = middle(2)
	canvas := num(b, "return document.getElementById('bands').getBoundingClientRect().left")
	b.Click(int(canvas)+200, y)
	panelShows(t, b, r, name)
	// The colour of the band there is that of the state.
	var colours []string
	b.Run(&colours, `const c = document.getElementById('bands'), row = document.querySelector('.row[title="' + arguments[0] + '"]');
		const y = row.offsetTop + row.offsetHeight / 2;
		const px = c.getContext('2d').getImageData(60, Math.round(y), 1, 1).data;
		const probe = document.createElement('i');
		probe.style.color = 'var(--s-connected)';
		document.body.append(probe);
		return ['rgb(' + px[0] + ', ' + px[1] + ', ' + px[2] + ')', getComputedStyle(probe).color]`, name)
	if colours[0] != colours[1] {
		t.Errorf("a connected server's band is %s, connected is %s", colours[0], colours[1])
	}
	b.Run(nil, "document.getElementById('close').click()")
}

func byKeyboard(t *testing.T, b *chromium.Browser, r report.Run) {
	b.Run(nil, "document.getElementById('lanes').focus()")
	b.Press(up, up, up, up, up, enter)
	panelShows(t, b, r, r.Verdicts[6].Server)
	b.Press(escape, down, enter)
	if got := str(b, "return document.getElementById('panel-title').textContent"); got == r.Verdicts[6].Server || got == "" {
		t.Errorf("one row down is %q", got)
	}
	b.Press(escape)
	if got := str(b, "return document.activeElement.id"); got != "lanes" {
		t.Errorf("the focus is on %q when the panel has closed", got)
	}
	all := str(b, "return document.getElementById('live').textContent")
	if !strings.Contains(all, "connected") || !strings.Contains(all, "restart") {
		t.Errorf("a reader of the screen hears %q", all)
	}
	// Time.
	axis := func() string {
		settle(b)
		return str(b, "return document.getElementById('axis').toDataURL()")
	}
	whole := axis()
	b.Press("+")
	near := axis()
	b.Press(right)
	moved := axis()
	b.Press("0")
	if second := axis(); near == whole || moved == near || second != whole {
		t.Error("the keys do not move in time")
	}
	b.Press("/")
	if got := str(b, "return document.activeElement.id"); got != "search" {
		t.Errorf("/ leads to %q", got)
	}
}

func byFilters(t *testing.T, b *chromium.Browser, r report.Run) {
	set := func(id, value string) string {
		b.Run(nil, `const e = document.getElementById(arguments[0]);
			e.value = arguments[1];
			e.dispatchEvent(new Event(e.tagName === 'INPUT' ? 'input' : 'change'))`, id, value)
		settle(b)
		return str(b, "return document.getElementById('shown').textContent")
	}
	all := len(r.History.Plan.Servers)
	faulty := len(r.History.Plan.Faults)
	for _, c := range []struct {
		id, value string
		want      int
	}{{"search", "files-000", 1}, {"search", "FILES-00 stdio", min(all/4, 10)}, {"search", "no such server", 0}, {"search", "", all},
		{"filter", "faulty", faulty}, {"filter", "healthy", all - faulty}, {"filter", "violated", 1}, {"filter", "all", all}} {
		got := set(c.id, c.value)
		count := ""
		for _, d := range strings.Split(got, " ")[0] {
			if d != ',' {
				count += string(d)
			}
		}
		// Which of ten files-00x there are depends on the size.
		if count != fmt.Sprint(c.want) && c.value != "FILES-00 stdio" {
			t.Errorf("%s %q shows %q, not %d", c.id, c.value, got, c.want)
		}
	}
	for _, sort := range []string{"name", "restarts", "away", "failed", "p99", "bad"} {
		set("sort", sort)
	}
	for group, want := range map[string]int{"group": 4, "kind": 4} {
		set("height", "0")
		set("group", group)
		got := int(num(b, "return document.querySelectorAll('.head').length"))
		if got != want && (all < 100 || got < 2) { // of many rows, not all heads are in sight
			t.Errorf("by %s there are %d heads, not %d", group, got, want)
		}
	}
	picture(t, b, fmt.Sprint("fit-", all))
	b.Run(nil, "document.querySelector('.head').click()")
	set("group", "none")
	set("height", "13")
}

// toTheViolation follows the verdict to its server and its moment.
func toTheViolation(t *testing.T, b *chromium.Browser, r report.Run) {
	b.Run(nil, "document.querySelector('[data-verdict]').click()")
	settle(b)
	v := r.Verdicts[6]
	panelShows(t, b, r, v.Server)
	if got := str(b, "return document.querySelector('#events .evidence:last-of-type .what, #events .evidence .what').dataset.of"); got != v.ID {
		t.Errorf("the evidence is of %q", got)
	}
	var times []string
	b.Run(&times, "return [...document.querySelectorAll('#events .evidence time')].map(e => e.textContent)")
	if len(times) != len(v.Evidence) || times[len(times)-1] != clockOf(v.At) {
		t.Errorf("the evidence stands at %v, the violation was at %v", times, v.At)
	}
	inSight := `const e = document.querySelector('#events .evidence').getBoundingClientRect(), l = document.getElementById('events').getBoundingClientRect();
		return e.top >= l.top && e.bottom <= l.bottom && !document.getElementById('pin').hidden ? 1 : 0`
	if num(b, inSight) != 1 {
		t.Error("the evidence is not in sight")
	}
	picture(t, b, fmt.Sprint("violation-", len(r.History.Plan.Servers)))
	b.Run(nil, "document.getElementById('close').click(); document.getElementById('reset').click(); scrollTo(0, 0)")
}

// everyWidth looks at the page on a telephone, a desk and a wall, in the light and in the dark.
func everyWidth(t *testing.T, b *chromium.Browser, name string) {
	var backgrounds []string
	for _, dark := range []bool{false, true} {
		b.Dark(dark)
		for _, width := range []int{390, 1024, 1920} {
			b.Resize(width, 1100)
			settle(b)
			if wide := num(b, "return document.documentElement.scrollWidth"); int(wide) > width {
				t.Errorf("at %d pixels the page is %v wide", width, wide)
			}
			picture(t, b, fmt.Sprintf("page-%s-%d-%v", name, width, map[bool]string{true: "dark", false: "light"}[dark]))
		}
		backgrounds = append(backgrounds, str(b, "return getComputedStyle(document.body).backgroundColor"))
	}
	if backgrounds[0] == backgrounds[1] {
		t.Errorf("light and dark have the same background, %s", backgrounds[0])
	}
	b.Run(nil, "document.getElementById('theme').click()") // light, whatever the system has
	if got := str(b, "return getComputedStyle(document.body).backgroundColor"); got != backgrounds[0] {
		t.Errorf("light is %s, not %s", got, backgrounds[0])
	}
	b.Run(nil, "document.getElementById('theme').click(); document.getElementById('theme').click()")
	b.Dark(false)
	b.Resize(1400, 1000)
}

func TestWhatServersSayIsTextInABrowser(t *testing.T) {
	b := chromium.Start(t, what)
	b.Resize(1400, 1000)
	r := hostile()
	look(t, b, r) // a dialog would fail the next command
	b.Run(nil, "[...document.querySelectorAll('[data-verdict]')].at(-1).click()")
	settle(b)
	b.Run(nil, "for (const d of document.querySelectorAll('details')) d.open = true")
	var found struct {
		Images, Scripts, Handlers int
		Title, Head, Rows, Events string
	}
	b.Run(&found, `return {
		images: document.images.length, scripts: document.scripts.length,
		handlers: [...document.querySelectorAll('*')].filter(e => e.hasAttribute('onerror') || e.hasAttribute('onload')).length,
		title: document.title, head: document.querySelector('h1').textContent,
		rows: document.getElementById('names').textContent, events: document.getElementById('events').textContent}`)
	if found.Images > 0 || found.Scripts != 2 || found.Handlers > 0 {
		t.Errorf("what servers said has become part of the page: %d images, %d scripts, %d handlers", found.Images, found.Scripts,
			found.Handlers)
	}
	for name, text := range map[string]string{"title": found.Title, "head": found.Head, "rows": found.Rows, "events": found.Events} {
		if !strings.Contains(text, "</script><script>alert(1)</script><img src=x onerror=alert(2)>") {
			t.Errorf("the %s does not say what the server said: %q", name, text[:min(len(text), 200)])
		}
		if strings.ContainsAny(text, "\x1b\u202e\u200b\x00\a") {
			t.Errorf("the %s holds characters that act on a reader: %q", name, text[:min(len(text), 200)])
		}
	}
	quiet(t, b)
}

// TestThePageOfASimulation shows what a run of the harness itself gives, not what a test made up.
func TestThePageOfASimulation(t *testing.T) {
	b := chromium.Start(t, what)
	b.Resize(1400, 1000)
	day, ok := scenario.Named("stampede")
	if !ok {
		t.Fatal("there is no stampede")
	}
	plan, err := day.Plan(0, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := sim.Run(t.Context(), plan, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Run{History: h, Verdicts: invariant.Judge(h)}
	look(t, b, r)
	b.Run(nil, "document.querySelector('.row').click()")
	panelShows(t, b, r, str(b, "return document.querySelector('.row').title"))
	// Every server was away twice, and the page has it from the phases, the openings and the faults.
	tags := str(b, "return document.querySelector('#panel .facts').textContent")
	for _, want := range []string{"2 restarts", "2 faults", "stdio"} {
		if !strings.Contains(tags, want) {
			t.Errorf("the panel says %q, and not %q", tags, want)
		}
	}
	legend := str(b, "return document.getElementById('legend').textContent")
	for _, want := range []string{"connected", "pending", "fault", "restart"} {
		if !strings.Contains(legend, want) {
			t.Errorf("the legend says %q, and not %q", legend, want)
		}
	}
	picture(t, b, "simulation")
	quiet(t, b)
}

// A day that was made smaller breaks within seconds and settles for minutes: the page begins with the moment of the violation, and with what
// led to it. A run that violates nothing is shown as a whole.
func TestThePageBeginsWithTheMoment(t *testing.T) {
	b := chromium.Start(t, what)
	b.Resize(1400, 1000)
	h := &history.History{Plan: scenario.Plan{Tier: scenario.Sim, Scenario: scenario.Scenario{Name: "day"}}, Events: []history.Event{
		{T: time.Second, Server: "s1", Side: history.Caller, Kind: history.Call, Call: "c1"},
		{T: 3 * time.Second, Server: "s1", Side: history.World, Kind: history.Executed, Call: "c1", Conn: 1},
		{T: 6 * time.Minute, Server: "s1", Side: history.World, Kind: history.Released, Conn: 1},
	}}
	v := invariant.Verdict{ID: "I3", Title: "calls", Answer: invariant.Violated, Why: "It ran.", Server: "s1", At: 3 * time.Second, Evidence: []int{0, 1}}
	const moment = `const left = parseFloat(document.getElementById('pin').style.left), names = document.querySelector('#bands').getBoundingClientRect();
		const from = names.left - document.getElementById('charts').getBoundingClientRect().left;
		return document.getElementById('pin').hidden ? -1 : (left - from) / names.width`
	look(t, b, report.Run{History: h, Verdicts: []invariant.Verdict{v}})
	if place := num(b, moment); place < 0.25 || place > 0.9 {
		t.Errorf("the violation stands at %.3f of the timeline", place)
	}
	v.Answer = invariant.Holds
	look(t, b, report.Run{History: h, Verdicts: []invariant.Verdict{v}})
	if place := num(b, moment); place >= 0 {
		t.Errorf("nothing is violated, and the timeline points at %.3f", place)
	}
}

// TestThePageOnPaper prints it, as a browser does to a PDF.
func TestThePageOnPaper(t *testing.T) {
	b := chromium.Start(t, what)
	for _, servers := range []int{10, 200} {
		look(t, b, newDay(servers, time.Hour).run())
		var printed struct{ Data []byte }
		b.Devtools("Page.printToPDF", map[string]any{"printBackground": true}, &printed)
		if !strings.HasPrefix(string(printed.Data), "%PDF") || len(printed.Data) < 20_000 {
			t.Errorf("%d servers are printed in %d bytes", servers, len(printed.Data))
		}
		if dir := os.Getenv("PICTURES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("print-%d.pdf", servers)), printed.Data, 0o600); err != nil {
				t.Error(err)
			}
		}
		quiet(t, b)
	}
}
