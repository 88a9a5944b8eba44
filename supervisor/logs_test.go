package supervisor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestServersLogs: log messages are kept and told, over a reconnect, without the server's secrets.
func TestServersLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"f": {Type: messages.SDK, Headers: map[string]string{"Authorization": "Bearer canary-of-a-secret"}},
		}}, map[string]*fake{"f": f})
		settled(t, m)
		w := m.Watch(0)
		defer w.Close()
		f.say("notifications/message", `{"level":"warning","logger":"db","data":{"table":9007199254740993}}`)
		f.say("notifications/message", `{"level":"info","data":"with canary-of-a-secret"}`)
		f.say("notifications/message", `{"level":"info","data":`+fmt.Sprintf("%q", strings.Repeat("x", 100_000))+`}`)
		synctest.Wait()
		lines := m.Logs("f")
		if len(lines) != 3 || lines[0].Level != "warning" || lines[0].Logger != "db" || lines[0].Epoch == 0 ||
			string(lines[0].Data) != `{"table":9007199254740993}` {
			t.Fatalf("%+v", lines)
		}
		for _, l := range lines {
			if strings.Contains(string(l.Data), "canary") || len(l.Data) > 20_000 || !json.Valid(l.Data) {
				t.Errorf("%s", l.Data)
			}
		}
		e, err := w.Next(t.Context())
		if err != nil || e.Kind != messages.EventLog || e.Server != "f" || e.Log.Level != "warning" {
			t.Errorf("%+v, %v", e, err)
		}
		if err := m.Reconnect(t.Context(), "f"); err != nil {
			t.Fatal(err)
		}
		f.say("notifications/message", `{"level":"info","data":"again"}`)
		synctest.Wait()
		if lines = m.Logs("f"); len(lines) != 4 || lines[3].Epoch <= lines[0].Epoch {
			t.Errorf("%+v", lines)
		}
		if m.Logs("x") != nil {
			t.Error("logs of nobody")
		}
	})
}

// TestAStormOfLogsIsBounded: a server that logs without end costs bounded memory, and does not push what matters out of a
// watcher's queue.
func TestAStormOfLogsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{}, map[string]*fake{"f": f})
		settled(t, m)
		w := m.Watch(100)
		defer w.Close()
		if err := m.Toggle(t.Context(), "f", false); err != nil {
			t.Fatal(err)
		}
		line := `{"level":"debug","data":` + fmt.Sprintf("%q", strings.Repeat("y", 5_000)) + `}`
		for i := range 5_000 {
			f.say("notifications/message", line)
			if i%100 == 99 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		size := 0
		lines := m.Logs("f")
		for _, l := range lines {
			size += len(l.Data)
		}
		if len(lines) > 1_000 || size > 1<<20 || size < 1<<19 {
			t.Errorf("%d lines, %d bytes", len(lines), size)
		}
		w.Close()
		kinds := map[messages.EventKind]int{}
		for e := range w.Events(t.Context()) {
			kinds[e.Kind]++
		}
		if kinds[messages.EventGap] != 0 || kinds[messages.EventPhase] == 0 || kinds[messages.EventLog] != 64 {
			t.Errorf("told were %v", kinds)
		}
		time.Sleep(time.Second)
	})
}
