package stdio_test

import (
	"context"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// BenchmarkIsolatedDial measures what isolation adds to the start of a child and its whole stop.
func BenchmarkIsolatedDial(b *testing.B) {
	for name, i := range map[string]*messages.Isolation{
		"none": nil, "temp": {PrivateTemp: true}, "preset": messages.DefaultIsolation(),
		"all": fullIsolation(messages.NetworkNone), "loopback": fullIsolation(messages.NetworkLoopback),
	} {
		b.Run(name, func(b *testing.B) {
			cfg := asRole("exit:0")
			cfg.Isolation = i
			for b.Loop() {
				c, err := stdio.New(cfg).Dial(context.Background(), &transporttest.Recorder{})
				if err != nil {
					b.Fatal(err)
				}
				<-c.Released()
			}
		})
	}
}
