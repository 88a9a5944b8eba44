package websocket

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
)

// downSink keeps the reason with which its connection went down.
type downSink struct{ down error }

func (s *downSink) Message([]byte)                 {}
func (s *downSink) Oversized(_, _ []byte, _ int64) {}
func (s *downSink) Noise([]byte)                   {}
func (s *downSink) Down(err error)                 { s.down = err }

// A panic of the library in a write ends its connection, and neither the program nor the wait of the sender.
func TestWebSocketWriteThatPanics(t *testing.T) {
	for name, send := range map[string]func(*writeQueue) (transports.Delivery, error){
		"a message": func(o *writeQueue) (transports.Delivery, error) {
			return o.sendMessage(context.Background(), []byte("{}"))
		},
		"a pong": func(o *writeQueue) (transports.Delivery, error) {
			o.queuePong(nil)
			synctest.Wait()
			return o.sendMessage(context.Background(), []byte("{}"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &downSink{}
				l := lifetime.New(sink)
				o := &writeQueue{
					lifetime: l, writesBegun: func() int64 { return 0 }, onBroken: func(error) {},
					writeText:    func([]byte) error { panic("the library") },
					writeControl: func([]byte) error { panic("the library") },
				}
				context.AfterFunc(l.Ctx, func() { o.failAll(l.EndError()) })
				_, err := send(o)
				<-l.Released
				var e *transports.Error
				if !errors.As(err, &e) || e.Class != messages.ClassPanic || !strings.Contains(e.Text, "the library") {
					t.Errorf("the sender got %v", err)
				}
				if !errors.As(sink.down, &e) || e.Class != messages.ClassPanic {
					t.Errorf("the connection went down with %v", sink.down)
				}
			})
		})
	}
}
