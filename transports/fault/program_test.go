package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// echoing answers every request with a result, and no notification.
func echoing(ctx context.Context, peer inprocess.Peer) error {
	for {
		b, err := peer.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		var m struct{ ID json.RawMessage }
		if json.Unmarshal(b, &m) == nil && m.ID != nil {
			if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)); err != nil {
				return err
			}
		}
	}
}

type program struct {
	*transporttest.Recorder
	transports.Conn
	control *fault.Control
}

func wrapped(t *testing.T, rules ...string) *program {
	t.Helper()
	control, err := fault.New(1)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{Recorder: &transporttest.Recorder{}, control: control}
	p.Conn, err = fault.Wrap(inprocess.New(echoing), control).Dial(t.Context(), p.Recorder)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range rules { // added after Dial, which they must not hit here
		r, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := control.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func request(id int64, method, tool string) transports.Message {
	return transports.Message{ID: id, Method: method, Name: tool,
		Body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"name":%q}}`, id, method, tool)}
}

func (p *program) finish(t *testing.T) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	<-p.Released()
	if len(p.Downs()) != 1 {
		t.Errorf("Down was called %d times", len(p.Downs()))
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestProgram checks for each fault the result of Send, the messages that arrive, and the end of the connection.
func TestProgram(t *testing.T) {
	for _, c := range []struct {
		rule     string
		delivery transports.Delivery
		class    messages.Class
		took     time.Duration // virtual, of Send; its context ends after a minute
		arrived  int
		arrives  time.Duration
		down     messages.Class // within the minute
	}{
		{"latency by=2s", transports.Written, "", 0, 1, 2 * time.Second, ""},
		{"latency by=2s direction=server", transports.Written, "", 2 * time.Second, 1, 2 * time.Second, ""},
		{"hang-call", transports.Written, "", 0, 0, 0, ""},
		{"black-hole", transports.NotWritten, messages.ClassTimeout, time.Minute, 0, 0, ""},
		{"deaf for=10s", transports.Written, "", 10 * time.Second, 1, 10 * time.Second, ""},
		{"deaf", transports.NotWritten, messages.ClassTimeout, time.Minute, 0, 0, ""},
		{"half-open", transports.NotWritten, messages.ClassTimeout, time.Minute, 0, 0, ""},
		{"duplicate-response", transports.Written, "", 0, 2, 0, ""},
		{"unknown-response", transports.Written, "", 0, 2, 0, ""},
		{"die-mid-call", transports.Written, "", 0, 0, 0, messages.ClassExited},
		{"answer-and-die", transports.Written, "", 0, 1, 0, messages.ClassExited},
		{"crash tool=echo", transports.NotWritten, messages.ClassExited, 0, 0, 0, messages.ClassExited},
		{"crash at=5s", transports.Written, "", 0, 1, 0, messages.ClassExited},
		{"reset tool=echo", transports.NotWritten, messages.ClassNetwork, 0, 0, 0, messages.ClassNetwork},
		{"throttle when=call after=7s", transports.NotWritten, messages.ClassThrottled, 0, 0, 0, ""},
		{"unauthorized", transports.NotWritten, messages.ClassUnauthorized, 0, 0, 0, ""},
		{"forbidden", transports.NotWritten, messages.ClassForbidden, 0, 0, 0, ""},
		{"server-error status=503", transports.NotWritten, messages.ClassNetwork, 0, 0, 0, ""},
		{"lose-session tool=echo", transports.NotWritten, messages.ClassSession, 0, 0, 0, messages.ClassSession},
		{"drop", transports.Written, "", 0, 0, 0, ""},
		{"drop direction=server", transports.Written, "", 0, 0, 0, ""},
		{"cut", transports.Written, "", 0, 0, 0, messages.ClassNetwork},
		{"close tool=echo", transports.NotWritten, messages.ClassExited, 0, 0, 0, messages.ClassExited},
		{"close direction=client", transports.Written, "", 0, 0, 0, messages.ClassExited},
		{"close at=5s", transports.Written, "", 0, 1, 0, messages.ClassExited},
		{"half-line then=exit", transports.Written, "", 0, 0, 0, messages.ClassExited},
		{"half-line", transports.Written, "", 0, 0, 0, ""},
		{"list-storm rate=0.1 for=15s", transports.Written, "", 0, 3, 10 * time.Second, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := wrapped(t, c.rule)
				synctest.Wait() // the half-open silence begins
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				d, err := p.Send(ctx, request(1, "tools/call", "echo"))
				var e *transports.Error
				if errors.As(err, &e); err != nil && e == nil {
					t.Errorf("the error is %T", err)
				}
				class := messages.Class("")
				if e != nil {
					class = e.Class
				}
				if took := time.Since(begin); d != c.delivery || class != c.class || took != c.took {
					t.Errorf("Send: %v, %q after %v; want %v, %q after %v", d, class, took, c.delivery, c.class, c.took)
				}
				if e != nil && strings.HasPrefix(c.rule, "throttle") && (e.RetryAfter != 7*time.Second || e.Status != 429) {
					t.Errorf("%+v", e)
				}
				time.Sleep(c.arrives - time.Since(begin))
				synctest.Wait()
				if got := len(p.Messages()); got != c.arrived {
					t.Errorf("after %v %d messages have arrived, want %d", c.arrives, got, c.arrived)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				var down messages.Class
				if downs := p.Downs(); len(downs) == 1 && errors.As(downs[0], &e) {
					down = e.Class
				}
				if down != c.down {
					t.Errorf("the connection is down with %q, want %q", down, c.down)
				}
				if down != "" {
					if d, err := p.Send(t.Context(), request(2, "ping", "")); d != transports.NotWritten || err == nil {
						t.Errorf("Send after the end: %v, %v", d, err)
					}
				}
				p.finish(t)
			})
		})
	}
}

func TestOversizedAndNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wrapped(t, "huge-line size=20m", "noise rate=1 line=hello for=1500ms")
		if d, err := p.Send(t.Context(), request(1, "tools/call", "echo")); d != transports.Written || err != nil {
			t.Errorf("%v, %v", d, err)
		}
		time.Sleep(time.Minute)
		if o := p.OversizedMessages(); len(o) != 1 || o[0].Size != 20<<20 {
			t.Errorf("oversized: %d", len(o))
		}
		if n := p.NoiseLines(); len(n) != 2 || n[0] != "hello" || p.Info().Noise != 2 {
			t.Errorf("noise: %q", n)
		}
		p.finish(t)
	})
}

// TestPartition: the messages that waited arrive when the partition is over, in their order.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wrapped(t, "partition on=none/such", "latency by=1s")
		for id := range int64(3) {
			if _, err := p.Send(t.Context(), request(id+1, "ping", "")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		r, _ := fault.Parse("partition for=10s direction=client")
		if _, err := p.control.Add(r); err != nil {
			t.Fatal(err)
		}
		p.control.Remove("r2") // what it has delayed stays delayed
		for id := range int64(3) {
			if _, err := p.Send(t.Context(), request(id+11, "ping", "")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(9 * time.Second)
		if n := len(p.Messages()); n != 3 {
			t.Errorf("in the partition %d messages have arrived, want the 3 that were on their way", n)
		}
		time.Sleep(2 * time.Second)
		got := p.Messages()
		if len(got) != 6 {
			t.Fatalf("%d messages have arrived", len(got))
		}
		for i, id := range []int{1, 2, 3, 11, 12, 13} {
			if !strings.Contains(string(got[i]), fmt.Sprintf(`"id":%d,`, id)) {
				t.Errorf("message %d is %s", i, got[i])
			}
		}
		p.finish(t)
	})
}

func TestDial(t *testing.T) {
	for rule, want := range map[string]messages.Class{
		"refuse": messages.ClassNetwork, "missing-binary": messages.ClassMissing, "missing-binary what=config": messages.ClassConfig, "exhausted": messages.ClassExhausted,
		"black-hole": messages.ClassTimeout, "crash on=dial": messages.ClassExited, "refuse times=1": messages.ClassNetwork,
	} {
		synctest.Test(t, func(t *testing.T) {
			r, err := fault.Parse(rule)
			if err != nil {
				t.Fatal(err)
			}
			control, err := fault.New(1, r)
			if err != nil {
				t.Fatal(err)
			}
			tr := fault.Wrap(inprocess.New(echoing), control)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var e *transports.Error
			if _, err := tr.Dial(ctx, &transporttest.Recorder{}); !errors.As(err, &e) || e.Class != want {
				t.Errorf("%s: %v, want class %q", rule, err, want)
			}
			if rule == "refuse times=1" {
				c, err := tr.Dial(t.Context(), &transporttest.Recorder{})
				if err != nil {
					t.Fatalf("the second time: %v", err)
				}
				_ = c.Close(t.Context())
			}
		})
	}
}

// TestAPartOfAMessageStandsInTheStream: what follows a part of a message is one line with it, also where it waits for the end of
// the rule; at the end of the connection the part is a line that is no message.
func TestAPartOfAMessageStandsInTheStream(t *testing.T) {
	const half = `{"jsonrpc":"2.0","id":1,`
	for rule, want := range map[string]struct {
		arrived []string
		noise   string
	}{
		"half-line times=1 then=next":          {[]string{half + `{"jsonrpc":"2.0","id":2,`, `{"jsonrpc":"2.0","id":3,`}, ""},
		"half-line times=1 then=stall for=10s": {[]string{half + `{"jsonrpc":"2.0","id":2,`, `{"jsonrpc":"2.0","id":3,`}, ""},
		"half-line times=1 then=stall":         {nil, half},
		"cut times=1":                          {nil, half},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := wrapped(t, rule)
			for id := range int64(3) {
				if _, err := p.Send(t.Context(), request(id+1, "tools/call", "echo")); err != nil && rule != "cut times=1" {
					t.Errorf("%s: %v", rule, err)
				}
			}
			time.Sleep(9 * time.Second)
			if n := len(p.Messages()); strings.Contains(rule, "stall") && n > 0 {
				t.Errorf("%s: %d messages have passed the part of one", rule, n)
			}
			time.Sleep(2 * time.Second)
			p.finish(t)
			got := p.Messages()
			for i, prefix := range want.arrived {
				if len(got) != len(want.arrived) || !strings.HasPrefix(string(got[i]), prefix) {
					t.Errorf("%s: %q has arrived, want %q", rule, got, want.arrived)
				}
			}
			if noise := strings.Join(p.NoiseLines(), ""); !strings.HasPrefix(noise, want.noise) || want.noise == "" && noise != "" {
				t.Errorf("%s: the noise is %q, want %q", rule, noise, want.noise)
			}
		})
	}
}
