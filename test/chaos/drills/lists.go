package drills

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// versionedList is a list of a server whose one entry is named by how often the list has changed. The fields below mu are written by the
// goroutines of the server.
type versionedList struct {
	method, kind, notification string
	read                       func(context.Context) (name string, err error)

	mu      sync.Mutex
	version int
	changed time.Time // when the server announced the newest change
	fetches []listFetch
}

// listFetch is one request of the list: when it came and when it was answered (zero: not yet), and whether with an error.
type listFetch struct {
	began, ended time.Time
	refused      bool
}

// playLists lets lists change, announced, while callers read them and the server takes its time. A caller never gets a list from before the
// newest change that the server had announced when the caller asked; a list that has not changed is asked for once.
func playLists(s *stage) {
	docs := newServer("docs", "read")
	var m *supervisor.Manager
	lists := []*versionedList{
		{method: "resources/list", kind: "resources", notification: "resources", read: func(ctx context.Context) (string, error) {
			list, err := m.Resources(ctx, "docs")
			if err != nil || len(list) != 1 {
				return fmt.Sprintf("%d entries", len(list)), err
			}
			return list[0].Name, nil
		}},
		{method: "resources/templates/list", kind: "resourceTemplates", notification: "resources", read: func(ctx context.Context) (string, error) {
			list, err := m.ResourceTemplates(ctx, "docs")
			if err != nil || len(list) != 1 {
				return fmt.Sprintf("%d entries", len(list)), err
			}
			return list[0].Name, nil
		}},
		{method: "prompts/list", kind: "prompts", notification: "prompts", read: func(ctx context.Context) (string, error) {
			list, err := m.Prompts(ctx, "docs")
			if err != nil || len(list) != 1 {
				return fmt.Sprintf("%d entries", len(list)), err
			}
			return list[0].Name, nil
		}},
	}
	for _, l := range lists {
		docs.offers[l.kind] = []map[string]any{l.entry()}
	}
	docs.instead = func(c *conn, request message) bool { return s.answerList(c, request, lists) }
	if m = s.connectServers(supervisor.Config{}, docs); m == nil {
		return
	}
	for range 25 + s.rng.IntN(20) {
		s.letPass(s.drawSpan(time.Millisecond, 2*time.Second))
		l := pickOne(s, lists...)
		switch s.rng.IntN(4) {
		case 0:
			s.changeLists(docs, lists, l.notification)
		default:
			s.runBeside(func() { s.readList(l) })
		}
	}
	s.letPass(time.Minute)
}

// entry returns the one entry of the list. The caller holds mu, or is alone.
func (l *versionedList) entry() map[string]any {
	name := fmt.Sprint(l.version)
	return map[string]any{"name": name, "uri": "drill://docs/" + name, "uriTemplate": "drill://docs/" + name + "/{id}"}
}

// changeLists changes the lists that a notification is about, and announces it.
func (s *stage) changeLists(docs *server, lists []*versionedList, notification string) {
	s.addStory("the %s change at %s", notification, time.Now().Format("4:05.000"))
	for _, l := range lists {
		if l.notification == notification {
			l.mu.Lock()
			l.version++
			l.changed = time.Now()
			l.mu.Unlock()
		}
	}
	docs.notifyClients("notifications/"+notification+"/list_changed", nil)
	s.settleAll()
}

// answerList answers a request of a list with the list of this moment, now or after a while. It refuses one now and then.
func (s *stage) answerList(c *conn, request message, lists []*versionedList) bool {
	at := slices.IndexFunc(lists, func(l *versionedList) bool { return l.method == request.Method })
	if at < 0 {
		return false
	}
	l := lists[at]
	l.mu.Lock()
	defer l.mu.Unlock()
	// The goroutines of the server share the chance of the drill with no other: they draw from the number of the request.
	n := len(l.fetches)
	refused, delay := (n*7+at)%9 == 8, time.Duration((n*5+at)%4)*700*time.Millisecond
	answer := map[string]any{"id": request.ID, "result": map[string]any{l.kind: []any{l.entry()}}}
	if refused {
		answer = map[string]any{"id": request.ID, "error": map[string]any{"code": -32603, "message": "not now"}}
	}
	l.fetches = append(l.fetches, listFetch{began: time.Now(), refused: refused})
	c.work.Go(func() {
		select {
		case <-time.After(delay):
		case <-c.ctx.Done():
			return
		}
		c.sendMessage(answer)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fetches[n].ended = time.Now()
	})
	return true
}

// readList reads a list as a caller does, and judges what it gets, how long that takes, and what the server was asked for it.
func (s *stage) readList(l *versionedList) {
	asked := time.Now()
	l.mu.Lock()
	least, before, kept := l.version, len(l.fetches), false
	for _, f := range l.fetches {
		kept = kept || !f.refused && !f.ended.IsZero() && !f.began.Before(l.changed)
	}
	l.mu.Unlock()
	name, err := l.read(s.ctx)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := slices.ContainsFunc(l.fetches, func(f listFetch) bool { return f.refused && (f.ended.IsZero() || f.ended.Equal(now)) })
	version := -1
	_, _ = fmt.Sscan(name, &version)
	switch {
	case err != nil && !refused:
		s.reportFinding("I20", "docs", "the list %s that was asked for at %s ended with %v, and the server refused none", l.method, asked.Format("4:05.000"), err)
	case err != nil && kept:
		s.reportFinding("I20", "docs", "the list %s had not changed since it was read, and a caller who asked at %s got %v", l.method, asked.Format("4:05.000"), err)
	case err != nil:
	case version < least || version > l.version:
		s.reportFinding("I20", "docs", "the list %s that was asked for at %s is %q; the server had announced its change to %d before", l.method, asked.Format("4:05.000"), name, least)
	case kept && (now != asked || len(l.fetches) > before):
		s.reportFinding("I14", "docs", "the list %s had not changed since it was read, and a caller who asked at %s waited for %s and %d requests", l.method, asked.Format("4:05.000"),
			now.Sub(asked), len(l.fetches)-before)
	}
}
