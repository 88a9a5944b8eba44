package writequeue

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
func TestWriteThatPanics(t *testing.T) {
	for name, send := range map[string]func(*Queue) (transports.Delivery, error){
		"a message": func(o *Queue) (transports.Delivery, error) {
			return o.Send(context.Background(), []byte("{}"))
		},
		"what is urgent": func(o *Queue) (transports.Delivery, error) {
			o.Wake()
			synctest.Wait()
			return o.Send(context.Background(), []byte("{}"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var urgent func() func() error
			if name == "what is urgent" {
				urgent = func() func() error { return func() error { panic("the library") } }
			}
			synctest.Test(t, func(t *testing.T) {
				sink := &downSink{}
				l := lifetime.New(sink)
				o := &Queue{
					Lifetime: l, OnBroken: func(error) {},
					Write:  func([]byte) (bool, error) { panic("the library") },
					Urgent: urgent,
				}
				context.AfterFunc(l.Ctx, func() { o.FailAll(l.EndError()) })
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
