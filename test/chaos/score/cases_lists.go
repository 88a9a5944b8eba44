package score

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// listCases are the cases about lists.
var listCases = []Case{
	{Name: "a new tool", Over: "stdio", Faults: []string{"R7", "R6"}, Plays: []string{"list-changed"}, play: newTool,
		Story: "A server gets a tool and says so."},
	{Name: "a new tool of 2026", Over: "stdio, modern", Faults: []string{"R15", "R6"}, Plays: []string{"list-changed"}, play: newModernTool,
		Story: "A server of 2026-07-28 gets a tool and says so to whoever has subscribed."},
	{Name: "changes without end", Over: "stdio", Faults: []string{"R6"}, Plays: []string{"list-storm"}, play: listStorm,
		Story: "A server says a thousand times in a second or two that its tools have changed; the last time it is true."},
	{Name: "a change for every list", Over: "stdio", Faults: []string{"R6", "R7"}, Plays: []string{"change-during-list"}, play: listFeedback,
		Story: "A server says that its tools have changed whenever they are listed."},
	{Name: "a change while the list is on its way", Over: "stdio", Faults: []string{"R7"}, Plays: []string{"change-during-list"}, play: changeDuringList,
		Story: "A tool comes and is announced while an answer that does not hold it is on its way."},
	{Name: "many pages", Over: "stdio", Faults: []string{"R5"}, play: manyPages,
		Story: "The list has a dozen pages."},
	{Name: "an empty cursor", Over: "stdio", Faults: []string{"R4"}, Plays: []string{"empty-cursor"}, play: emptyCursor,
		Story: "The cursor of the second page is an empty text, which is a cursor like any other."},
	{Name: "pages in a circle", Over: "stdio", Faults: []string{"R4"}, Plays: []string{"cursor-loop"}, play: cursorLoop,
		Story: "Every page has the same next cursor."},
	{Name: "pages without end", Over: "stdio", Faults: []string{"R4", "I9"}, Plays: []string{"cursor-loop"}, play: endlessPages,
		Story: "Every page has a next cursor that was never seen before."},
	{Name: "bad schemas", Over: "stdio", Faults: []string{"R10"}, Plays: []string{"bad-schema"}, play: badSchemas,
		Story: "Some tools of a list cannot be used. That costs those tools, and no others."},
	{Name: "a list that is none", Over: "stdio", Faults: []string{"R10"}, play: notAList,
		Story: "The answer to tools/list holds no list."},
}

// newTool has the tool announced by a notification of the open connection.
func newTool(a *caseRun) { a.scoreNewTool(a.newServer("good")) }

// newModernTool announces the tool only on a subscription, which the client has to open by itself.
func newModernTool(a *caseRun) { a.scoreNewTool(a.newServer("modern")) }

// scoreNewTool makes the server add a tool, and gives a point if the client offers it within 8 s without reconnecting.
func (a *caseRun) scoreNewTool(p *testServer) {
	a.scoreConnect(p)
	a.listTools(p)
	grown := a.callTool(p, "grow", ampleTime, map[string]any{"name": "come-lately"})
	a.scorePoint(grown.OK, "the server gets the tool", "%s", grown.errorText())
	ok := a.waitFor(8*time.Second, func() bool { return slices.Contains(a.listTools(p).Tools, "come-lately") })
	a.scorePoint(ok, "the tool is offered", "it is not 8s later")
	a.scorePoint(len(a.startTimes(p)) == 1, "nothing is reconnected for it", "%d starts", len(a.startTimes(p)))
}

// listStorm is a server whose files change all the time. A client that lists at each notification sends a thousand requests;
// one that waits for silence never sees the last change while the storm goes on.
func listStorm(a *caseRun) {
	p := a.newServer("list-storm")
	a.connectServer(p)
	a.listTools(p)
	ok := a.waitFor(ampleTime, func() bool { return slices.Contains(a.listTools(p).Tools, "after-the-storm") })
	a.scorePoint(ok, "the last change is seen", "the tool is not offered %s later", ampleTime)
	// The case itself asks ten times a second; a client without a list of its own passes that on.
	n := a.countRequests(p, "tools/list")
	a.scorePoint(n <= 250, "the server is not asked for its list at every word", "%d lists", n)
	echo, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "%s", echo.errorText())
}

// listFeedback makes listing itself the reason for the next notification: a client without a pause between lists loops at the
// speed of the pipe.
func listFeedback(a *caseRun) {
	p := a.newServer("list-feedback")
	a.scoreConnect(p)
	a.sleepContext(5 * time.Second)
	n := a.countRequests(p, "tools/list")
	a.scorePoint(n <= 60, "its list is asked for at most 60 times in 5s", "%d times", n)
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "no answer")
}

// changeDuringList announces a change while the list that does not hold it is still on its way. A client that clears its mark
// when the answer arrives forgets the change.
func changeDuringList(a *caseRun) {
	p := a.newServer("changes-while-listing", "times=1")
	a.connectServer(p)
	a.listTools(p)
	ok := a.waitFor(8*time.Second, func() bool { return slices.Contains(a.listTools(p).Tools, "changed-1") })
	a.scorePoint(ok, "the new tool is offered", "it is not 8s later")
}

// manyPages has pages of five tools, so that a client which reads only the first page, or a fixed number of pages, offers too
// few.
func manyPages(a *caseRun) {
	p := a.newServer("good", "page=5", "tools=48")
	a.connectServer(p)
	got := a.listTools(p)
	want := len(servers.GoodTools()) + 48
	a.scorePoint(len(got.Tools) == want, "all tools are listed", "%d of %d; %s", len(got.Tools), want, got.errorText())
}

// emptyCursor tells "no cursor" from "a cursor that is empty": the specification has the member's absence end the list, and
// languages in which an absent text is empty take one for the other.
func emptyCursor(a *caseRun) {
	p := a.newServer("empty-cursor")
	a.scoreConnect(p)
	list := a.listTools(p)
	a.scorePoint(slices.Contains(list.Tools, "on-the-first-page") && slices.Contains(list.Tools, "on-the-second-page"),
		"the tools of both pages are listed", "%v; %s", list.Tools, list.errorText())
}

// cursorLoop can be noticed by comparing cursors, endlessPages only by a limit.
func cursorLoop(a *caseRun) { a.scorePagesEnd(a.newServer("cursor-loop")) }

func endlessPages(a *caseRun) { a.scorePagesEnd(a.newServer("endless-pages")) }

// scorePagesEnd gives points if the client stops reading a list whose pages do not end, within limits that no honest list
// reaches.
func (a *caseRun) scorePagesEnd(p *testServer) {
	other := a.newServer("good")
	a.connectServer(other)
	waiting := a.beginConnect(p, 15*time.Second)
	connected := <-waiting
	if connected.OK {
		got := a.listTools(p)
		a.scorePoint(!got.hung, "the list ends", "%s", got.errorText())
	} else {
		a.scorePoint(!connected.hung, "the list ends", "%s", connected.errorText())
	}
	// The client may refuse the server or offer a part of its tools; both are right as long as it stops.
	before := a.countRequests(p, "tools/list")
	a.scorePoint(before <= 5000, "there is a limit to the pages that are asked for", "more than 5000 pages are")
	a.sleepContext(2 * time.Second)
	after := a.countRequests(p, "tools/list")
	a.scorePoint(after-before <= 2500, "it does not go on afterwards", "more than 2500 more pages in 2s")
	_, ok := a.callEcho(other, "x")
	a.scorePoint(ok, "the other server is called", "no answer")
}

// badSchemas has tools whose input schema no client can use, between tools that are fine. A client that validates the list as a
// whole loses all of them.
func badSchemas(a *caseRun) {
	p := a.newServer("bad-schemas")
	a.scoreConnect(p)
	list := a.listTools(p)
	missing := []string{}
	for _, name := range append(servers.GoodTools(), servers.UsableTools()...) {
		if !slices.Contains(list.Tools, name) {
			missing = append(missing, name)
		}
	}
	a.scorePoint(list.OK && len(missing) == 0, "every usable tool is listed", "%d are missing; %s", len(missing), list.errorText())
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a good tool is called", "no answer")
}

// notAList answers tools/list with an object that has no tools. A client that takes the missing member for an empty list shows
// its user a healthy server without tools.
func notAList(a *caseRun) {
	p, other := a.newServer("not-a-list"), a.newServer("good")
	a.connectServer(other)
	connected := <-a.beginConnect(p, 10*time.Second)
	list := a.listTools(p)
	a.scorePoint(!connected.OK || !list.OK, "an error says so", "an empty list is offered as if there were no tools")
	_, ok := a.callEcho(other, "x")
	a.scorePoint(ok, "the other server is called", "no answer")
}
