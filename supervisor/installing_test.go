package supervisor_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// working is a transport whose other side installs for a time before it becomes a server. Its processes work meanwhile.
type working struct {
	installs time.Duration
	server   *fake
	// waits is how much of the time its processes wait for a processor.
	waits float64
	// busy says that they never cease to work.
	busy  bool
	dials atomic.Int64
}

func (w *working) Kind() messages.TransportKind { return messages.Stdio }

func (w *working) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	w.dials.Add(1)
	conn, err := inprocess.New(func(ctx context.Context, peer inprocess.Peer) error {
		select {
		case <-time.After(w.installs):
		case <-ctx.Done():
			return io.EOF
		}
		return w.server.serve(ctx, peer)
	}).Dial(ctx, sink)
	if err != nil {
		return nil, err
	}
	return &workingConn{conn, w, time.Now()}, nil
}

type workingConn struct {
	transports.Conn
	owner *working
	begun time.Time
}

func (c *workingConn) Work() (procinfo.Usage, error) {
	passed := time.Since(c.begun)
	w := procinfo.Usage{CPUWait: time.Duration(float64(passed) * c.owner.waits)}
	if c.owner.busy {
		w.CPU = passed
	} else if c.owner.waits == 0 {
		w.CPU = min(passed, c.owner.installs) / 2
	}
	return w, nil
}

// launching runs a manager whose server "x" has the given command and the transport, as those have whose name begins so.
func launching(t *testing.T, w *working, spec supervisor.Spec) *supervisor.Manager {
	if w.server == nil {
		w.server = newFake("tool")
	}
	quick := &working{server: newFake("tool")}
	return start(t, supervisor.Config{
		Gate:    restart.Limits{Processes: 1, UnansweredFactor: 2},
		Servers: map[string]supervisor.Spec{"x": spec},
		Transport: func(name string, spec supervisor.Spec) (transports.Transport, error) {
			if strings.HasPrefix(name, "x") {
				return w, nil
			}
			return quick, nil
		},
	}, nil)
}

// historyText is the history of the server x.
func historyText(t *testing.T, m *supervisor.Manager) (texts string) {
	entries, err := m.History("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		texts += e.Text + "\n"
	}
	return texts
}

var npx = supervisor.Spec{Command: "npx", Args: []string{"-y", "some-server"}}

// TestAFirstInstallationIsWaitedFor has npx install for 54 s, which is longer than a server may be silent: it is said to be
// installing, and is connected as soon as its server answers, at the first attempt.
func TestAFirstInstallationIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &working{installs: 54 * time.Second}
		m := launching(t, w, npx)
		time.Sleep(3 * time.Second)
		if st, _ := m.ServerStatus("x"); st.Step != messages.Handshaking {
			t.Errorf("after 3s: %s", st.Reason)
		}
		time.Sleep(42 * time.Second)
		if st, _ := m.ServerStatus("x"); st.Step != messages.Installing || st.Reason != "installing (npx)" {
			t.Errorf("after 45s: %s", st.Reason)
		}
		time.Sleep(10 * time.Second)
		if st, _ := m.ServerStatus("x"); st.Status != messages.Connected || w.dials.Load() != 1 {
			t.Errorf("after 55s: %s, %s, %d dials", st.Status, st.Error, w.dials.Load())
		}
		if texts := historyText(t, m); !strings.Contains(texts, "most likely installing") {
			t.Errorf("the history says nothing of an installation: %s", texts)
		}
	})
}

// TestHowARunnerIsGivenUp has servers behind npx that never say anything.
func TestHowARunnerIsGivenUp(t *testing.T) {
	own := npx
	own.ConnectTimeout = messages.Duration(7 * time.Second)
	for _, c := range []struct {
		name string
		w    *working
		spec supervisor.Spec
		at   time.Duration
		text string
	}{
		{"nothing is done", &working{installs: time.Hour, waits: 1e-9}, npx, 30 * time.Second, "no answer to initialize within 30s"},
		{"it installs and then is silent", &working{installs: 20 * time.Second, server: func() *fake { f := newFake(); f.mute = true; return f }()}, npx,
			50 * time.Second, "npx was at work for 20s, and then no answer to initialize for 30s"},
		{"it works for ever", &working{installs: time.Hour, busy: true}, npx, 10 * time.Minute,
			"npx was still at work after 10m0s, and its server had not said anything"},
		{"the person's bound wins", &working{installs: time.Hour, busy: true}, own, 7 * time.Second, "no answer to initialize within 7s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := launching(t, c.w, c.spec)
				time.Sleep(c.at - 100*time.Millisecond)
				if st, _ := m.ServerStatus("x"); st.Status != messages.Pending {
					t.Errorf("before %v: %s, %s", c.at, st.Status, st.Error)
				}
				time.Sleep(200 * time.Millisecond)
				if st, _ := m.ServerStatus("x"); st.Status != messages.Failed || !strings.Contains(st.Error, c.text) {
					t.Errorf("after %v: %s, %s", c.at, st.Status, st.Error)
				}
			})
		})
	}
}

// TestAServerThatWaitsForAProcessorIsNotSilent has a server on a quarter of a core, which takes 100 s to answer.
func TestAServerThatWaitsForAProcessorIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &working{installs: 100 * time.Second, waits: 0.75}
		m := launching(t, w, supervisor.Spec{Command: "node", Args: []string{"server.js"}})
		time.Sleep(102 * time.Second)
		if st, _ := m.ServerStatus("x"); st.Status != messages.Connected || w.dials.Load() != 1 {
			t.Errorf("%s, %s, %d dials", st.Status, st.Error, w.dials.Load())
		}
	})
}

// TestATimeoutThatWasHitIsNotHitAgain has a server that takes 100 s to answer, each time: the third attempt may last 120 s.
func TestATimeoutThatWasHitIsNotHitAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &working{installs: 100 * time.Second, waits: 1e-9}
		m := launching(t, w, supervisor.Spec{Command: "node", Args: []string{"server.js"}})
		time.Sleep(5 * time.Minute)
		if st, _ := m.ServerStatus("x"); st.Status != messages.Connected || w.dials.Load() != 3 {
			t.Errorf("%s, %s, %d dials", st.Status, st.Error, w.dials.Load())
		}
		if texts := historyText(t, m); !strings.Contains(texts, "within 30s") || !strings.Contains(texts, "within 1m0s") {
			t.Errorf("%s", texts)
		}
	})
}

// TestInstallationsDoNotHoldUpOthers fills every place of the gate with installations: a server behind them starts.
func TestInstallationsDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &working{installs: 5 * time.Minute}
		m := launching(t, w, npx)
		for _, name := range []string{"x2", "x3"} {
			go func() { _ = m.Connect(t.Context(), name, npx) }()
		}
		time.Sleep(15 * time.Second)
		begin := time.Now()
		if err := m.Connect(t.Context(), "y", supervisor.Spec{Command: "node"}); err != nil {
			t.Error(err)
		}
		if passed := time.Since(begin); passed > 3*time.Second {
			t.Errorf("a healthy server waited for %v", passed)
		}
		for _, name := range []string{"x", "x2", "x3"} {
			if st, _ := m.ServerStatus(name); st.Step != messages.Installing {
				t.Errorf("%s: %s %s %s", name, st.Status, st.Reason, st.Error)
			}
		}
	})
}
