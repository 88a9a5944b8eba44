package stdio_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// router is a sink that wakes the caller whose id a message carries, as a session does.
type router struct {
	waiting []chan int
	down    chan struct{}
}

func (r *router) Message(body []byte) {
	id := 0
	for _, c := range body[len(`{"id":`):] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + int(c-'0')
	}
	r.waiting[id] <- len(body)
}
func (r *router) Oversized([]byte, []byte, int64) {}
func (r *router) Noise([]byte)                    {}
func (r *router) Down(error)                      { close(r.down) }

// BenchmarkStdioRoundTrip is one message to a child that gives it back, and the answer. "floor" is the same child with
// one caller, a write and a buffered read, and nothing else.
func BenchmarkStdioRoundTrip(b *testing.B) {
	for _, size := range []int{100, 64 << 10} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("size=%d/callers=%d", size, callers), func(b *testing.B) {
				r := &router{down: make(chan struct{})}
				for range callers {
					r.waiting = append(r.waiting, make(chan int, 1))
				}
				c, err := stdio.New(asRole("echo")).Dial(context.Background(), r)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.SetBytes(int64(size))
				b.ResetTimer()
				var wg sync.WaitGroup
				for i := range callers {
					wg.Add(1)
					go func() {
						defer wg.Done()
						m := transports.Message{ID: int64(i), Method: "echo", Body: benchBody(i, size)}
						for n := i; n < b.N; n += callers {
							if d, err := c.Send(context.Background(), m); err != nil {
								b.Error(d, err)
								return
							}
							if got := <-r.waiting[i]; got != len(m.Body) {
								b.Errorf("%d bytes back, not %d", got, len(m.Body))
								return
							}
						}
					}()
				}
				wg.Wait()
				b.StopTimer()
				_ = c.Close(context.Background())
			})
		}
		b.Run(fmt.Sprintf("size=%d/floor", size), func(b *testing.B) {
			cfg := asRole("echo")
			cmd := exec.Command(cfg.Command)
			cmd.Env = cfg.Env
			in, err := cmd.StdinPipe()
			if err != nil {
				b.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			lines := bufio.NewReaderSize(out, 2*size+1024)
			body := append(benchBody(0, size), '\n')
			b.SetBytes(int64(size))
			b.ResetTimer()
			for range b.N {
				if _, err := in.Write(body); err != nil {
					b.Fatal(err)
				}
				if got, err := lines.ReadSlice('\n'); err != nil || len(got) != len(body) {
					b.Fatal(len(got), err)
				}
			}
			b.StopTimer()
			_ = in.Close()
			_ = cmd.Wait()
		})
	}
}

func benchBody(id, size int) []byte {
	body := fmt.Appendf(nil, `{"id":%d,"jsonrpc":"2.0","method":"echo","params":{"text":"`, id)
	return append(append(body, strings.Repeat("x", max(0, size-len(body)-3))...), `"}}`...)
}

// BenchmarkDeathToDown is the time from a child's SIGKILL until Sink.Down, the start of the child not counted.
func BenchmarkDeathToDown(b *testing.B) {
	for _, role := range []string{"echo", "launcher:deaf"} {
		b.Run(role, func(b *testing.B) {
			var sum, worst time.Duration
			for range b.N {
				r := &router{down: make(chan struct{}), waiting: nil}
				c, err := stdio.New(asRole(role)).Dial(context.Background(), &downOnlySink{r})
				if err != nil {
					b.Fatal(err)
				}
				if role != "echo" {
					time.Sleep(20 * time.Millisecond) // its child has started and holds the output
				}
				start := time.Now()
				if p, err := os.FindProcess(c.Info().PID); err != nil || p.Kill() != nil {
					b.Fatal("the child cannot be killed")
				}
				<-r.down
				took := time.Since(start)
				sum += took
				worst = max(worst, took)
				<-c.Released()
			}
			b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs/down")
			b.ReportMetric(float64(worst.Microseconds()), "µs/worst")
		})
	}
}

// downOnlySink hears only Down.
type downOnlySink struct{ *router }

func (d *downOnlySink) Message([]byte) {}

// BenchmarkStdioDialClose is the start of a child, one message and the whole stop.
func BenchmarkStdioDialClose(b *testing.B) {
	for range b.N {
		r := &router{down: make(chan struct{}), waiting: []chan int{make(chan int, 1)}}
		c, err := stdio.New(asRole("echo")).Dial(context.Background(), r)
		if err != nil {
			b.Fatal(err)
		}
		body := benchBody(0, 100)
		if d, err := c.Send(context.Background(), transports.Message{ID: 1, Body: body}); err != nil {
			b.Fatal(d, err)
		}
		<-r.waiting[0]
		if err := c.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
