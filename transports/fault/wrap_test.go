package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// sinkTransport is a transport in process that shows the sink which it gets.
type sinkTransport struct {
	transports.Transport
	sink transports.Sink
}

func (s *sinkTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	s.sink = sink
	return s.Transport.Dial(ctx, sink)
}

// namingSink has every optional method of a sink, and keeps which of them were called.
type namingSink struct {
	transporttest.Recorder
	mu    sync.Mutex
	calls []string
}

func (n *namingSink) MessageOn(id int64, _ []byte)      { n.noteCall(fmt.Sprint("message on ", id)) }
func (n *namingSink) Discarded(_, _ []byte, size int64) { n.noteCall(fmt.Sprint("discarded ", size)) }
func (n *namingSink) StreamReopened()                   { n.noteCall("reopened") }

func (n *namingSink) noteCall(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, text)
}

func (n *namingSink) sortedCalls() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(slices.Values(n.calls))
}

// TestTheOptionalMethodsOfASinkPass checks that what a transport tells by an optional method reaches a sink that has it, without
// rules and with one, and that a sink without it gets the plain call.
func TestTheOptionalMethodsOfASinkPass(t *testing.T) {
	for _, rule := range []string{"", "latency on=roots/list"} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				control, err := fault.New(1)
				if err != nil {
					t.Fatal(err)
				}
				dial := func(sink transports.Sink) transports.Sink {
					inner := &sinkTransport{Transport: inprocess.New(echoing)}
					c, err := fault.Wrap(inner, control).Dial(t.Context(), sink)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = c.Close(context.Background()) })
					return inner.sink
				}
				tell := func(to transports.Sink) {
					to.(transports.RequestStreamSink).MessageOn(7, []byte(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`))
					to.(transports.DiscardSink).Discarded(nil, nil, 9)
				}
				all, plain := &namingSink{}, &transporttest.Recorder{}
				toAll, toPlain := dial(all), dial(plain)
				if rule != "" {
					r, err := fault.Parse(rule)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := control.Add(r); err != nil {
						t.Fatal(err)
					}
				}
				tell(toAll)
				time.Sleep(time.Minute)
				toAll.(transports.StreamReopenSink).StreamReopened()
				if got, want := all.sortedCalls(), []string{"discarded 9", "message on 7", "reopened"}; !slices.Equal(got, want) {
					t.Errorf("the sink got %q, want %q", got, want)
				}
				tell(toPlain)
				time.Sleep(time.Minute)
				if _, reopens := toPlain.(transports.StreamReopenSink); reopens || len(plain.Messages()) == 0 {
					t.Errorf("the plain sink got %d messages; it reopens: %v", len(plain.Messages()), reopens)
				}
			})
		})
	}
}

// answerThenError is a transport like HTTP, of which Send gives the answer to the sink before it returns, with err for the first.
type answerThenError struct {
	transports.Transport
	transports.Conn
	sink transports.Sink
	err  error
}

func (a *answerThenError) Kind() messages.TransportKind { return messages.HTTP }

func (a *answerThenError) Dial(ctx context.Context, sink transports.Sink) (_ transports.Conn, err error) {
	a.sink = sink
	a.Conn, err = a.Transport.Dial(ctx, sink)
	return a, err
}

func (a *answerThenError) Send(_ context.Context, m transports.Message) (transports.Delivery, error) {
	a.sink.Message(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, m.ID))
	err := a.err
	a.err = nil
	return transports.Written, err
}

// TestAFailedSendLeavesNoHeldAnswer checks that a request whose answer was held back and whose Send failed leaves nothing behind:
// the next request of that id does not wait for the answer of the first.
func TestAFailedSendLeavesNoHeldAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control, err := fault.New(1)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := fault.Parse("hang-call times=1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := control.Add(rule); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("the stream broke after the answer")
		inner := &answerThenError{Transport: inprocess.New(echoing), err: broken}
		conn, err := fault.Wrap(inner, control).Dial(t.Context(), &transporttest.Recorder{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, want := range []error{broken, nil} {
			if _, err := conn.Send(ctx, request(1, "tools/call", "echo")); !errors.Is(err, want) {
				t.Errorf("Send says %v, want %v", err, want)
			}
		}
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
