package score

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

var listCases = []Case{
	{Name: "a new tool", Over: "stdio", Faults: []string{"R7"}, play: newTool,
		Story: "A server gets a tool and says so."},
	{Name: "a new tool of 2026", Over: "stdio, modern", Faults: []string{"R15"}, play: newModernTool,
		Story: "A server of 2026-07-28 gets a tool and says so to whoever has subscribed."},
	{Name: "changes without end", Over: "stdio", Faults: []string{"R6"}, play: storm,
		Story: "A server says a thousand times in a second or two that its tools have changed; the last time it is true."},
	{Name: "a change for every list", Over: "stdio", Faults: []string{"R6"}, play: feedback,
		Story: "A server says that its tools have changed whenever they are listed."},
	{Name: "a change while the list is on its way", Over: "stdio", Faults: []string{"R7"}, play: changeDuringList,
		Story: "A tool comes and is announced while an answer that does not hold it is on its way."},
	{Name: "many pages", Over: "stdio", Faults: []string{"R5"}, play: pages,
		Story: "The list has a dozen pages."},
	{Name: "an empty cursor", Over: "stdio", Faults: []string{"R4"}, play: emptyCursor,
		Story: "The cursor of the second page is an empty text, which is a cursor like any other."},
	{Name: "pages in a circle", Over: "stdio", Faults: []string{"R4"}, play: cursorLoop,
		Story: "Every page has the same next cursor."},
	{Name: "pages without end", Over: "stdio", Faults: []string{"R4", "I9"}, play: endlessPages,
		Story: "Every page has a next cursor that was never seen before."},
	{Name: "bad schemas", Over: "stdio", Faults: []string{"R10"}, play: badSchemas,
		Story: "Some tools of a list cannot be used. That costs those tools, and no others."},
	{Name: "a list that is none", Over: "stdio", Faults: []string{"R10"}, play: notAList,
		Story: "The answer to tools/list holds no list."},
}

func newTool(a *arena) { a.toolAppears(a.server("good")) }

func newModernTool(a *arena) { a.toolAppears(a.server("modern")) }

func (a *arena) toolAppears(p *peer) {
	a.connects(p)
	a.list(p)
	grown := a.call(p, "grow", enough, map[string]any{"name": "come-lately"})
	a.must(grown.OK, "the server gets the tool", "%s", grown.why())
	ok := a.within(8*time.Second, func() bool { return slices.Contains(a.list(p).Tools, "come-lately") })
	a.must(ok, "the tool is offered", "it is not 8s later")
	a.must(len(a.starts(p)) == 1, "nothing is reconnected for it", "%d starts", len(a.starts(p)))
}

func storm(a *arena) {
	p := a.server("list-storm")
	a.connect(p)
	a.list(p)
	ok := a.within(enough, func() bool { return slices.Contains(a.list(p).Tools, "after-the-storm") })
	a.must(ok, "the last change is seen", "the tool is not offered %s later", enough)
	// The case itself asks ten times a second, which a client without a list of its own passes on.
	n := a.count(p, "tools/list")
	a.must(n <= 250, "the server is not asked for its list at every word", "%d lists", n)
	echo, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "%s", echo.why())
}

func feedback(a *arena) {
	p := a.server("list-feedback")
	a.connects(p)
	a.pause(5 * time.Second)
	n := a.count(p, "tools/list")
	a.must(n <= 60, "its list is asked for at most 60 times in 5s", "%d times", n)
	_, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "no answer")
}

func changeDuringList(a *arena) {
	p := a.server("changes-while-listing", "times=1")
	a.connect(p)
	a.list(p)
	ok := a.within(8*time.Second, func() bool { return slices.Contains(a.list(p).Tools, "changed-1") })
	a.must(ok, "the new tool is offered", "it is not 8s later")
}

func pages(a *arena) {
	p := a.server("good", "page=5", "tools=48")
	a.connect(p)
	got := a.list(p)
	want := len(servers.GoodTools()) + 48
	a.must(len(got.Tools) == want, "all tools are listed", "%d of %d; %s", len(got.Tools), want, got.why())
}

func emptyCursor(a *arena) {
	p := a.server("empty-cursor")
	a.connects(p)
	list := a.list(p)
	a.must(slices.Contains(list.Tools, "on-the-first-page") && slices.Contains(list.Tools, "on-the-second-page"),
		"the tools of both pages are listed", "%v; %s", list.Tools, list.why())
}

func cursorLoop(a *arena) { a.endOfPages(a.server("cursor-loop")) }

func endlessPages(a *arena) { a.endOfPages(a.server("endless-pages")) }

func (a *arena) endOfPages(p *peer) {
	other := a.server("good")
	a.connect(other)
	waiting := a.connecting(p, 15*time.Second)
	connected := <-waiting
	if connected.OK {
		got := a.list(p)
		a.must(!got.hung, "the list ends", "%s", got.why())
	} else {
		a.must(!connected.hung, "the list ends", "%s", connected.why())
	}
	before := a.count(p, "tools/list")
	a.must(before <= 5000, "there is a limit to the pages that are asked for", "more than 5000 pages are")
	a.pause(2 * time.Second)
	after := a.count(p, "tools/list")
	a.must(after-before <= 2500, "it does not go on afterwards", "more than 2500 more pages in 2s")
	_, ok := a.echoes(other, "x")
	a.must(ok, "the other server is called", "no answer")
}

func badSchemas(a *arena) {
	p := a.server("bad-schemas")
	a.connects(p)
	list := a.list(p)
	missing := []string{}
	for _, name := range append(servers.GoodTools(), servers.UsableTools()...) {
		if !slices.Contains(list.Tools, name) {
			missing = append(missing, name)
		}
	}
	a.must(list.OK && len(missing) == 0, "every usable tool is listed", "%d are missing; %s", len(missing), list.why())
	_, ok := a.echoes(p, "x")
	a.must(ok, "a good tool is called", "no answer")
}

func notAList(a *arena) {
	p, other := a.server("not-a-list"), a.server("good")
	a.connect(other)
	connected := <-a.connecting(p, 10*time.Second)
	list := a.list(p)
	a.must(!connected.OK || !list.OK, "an error says so", "an empty list is offered as if there were no tools")
	_, ok := a.echoes(other, "x")
	a.must(ok, "the other server is called", "no answer")
}
