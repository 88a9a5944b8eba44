// Package lists measures what a large list of tools costs: asking for it and having it registered in mcpvisor, beside what
// mcp-go's client and the official SDK's need until they have decoded it, and beside the floor, which asks for the same bytes
// and reads them.
//
//	go run ./test/bench/run -only lists                                  # 5,000 tools, in one page and in several
//	go run ./test/bench/run -only lists -list-tools 500 -list-servers stdio
//
// The servers answer from bytes that they made before, so that the client is what is measured; mcp-go's own server in process
// is there as well, and costs what it costs. Each list differs from the one before by one word of one description: mcpvisor
// publishes nothing for a list that is as it was, and that would not be the comparison (it has a column of its own).
//
// What mcpvisor does more than the others within that time: it names every tool for a model, refuses those that cannot be
// used, compares the list with the one before, and publishes a snapshot that callers see.
package lists

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Case is what is listed.
type Case struct {
	// Server is "stdio" or "http", which answer from bytes, or "sdk": mcp-go's server in this process.
	Server string
	// Tools is how many there are, Page how many stand on a page; 0: all on one.
	Tools, Page int
}

func (c Case) String() string {
	if c.Page == 0 {
		return fmt.Sprintf("%s, %d tools in one page", c.Server, c.Tools)
	}
	return fmt.Sprintf("%s, %d tools in pages of %d", c.Server, c.Tools, c.Page)
}

// Contenders are who is measured. "unchanged" is mcpvisor with a list that is as it was.
var Contenders = []string{"mcpvisor", "unchanged", "mcp-go", "go-sdk", "floor"}

// Client is connected, and has the list.
type Client struct {
	// List asks for the whole list again and returns when it can be used: how many tools there are.
	List  func(ctx context.Context) (int, error)
	Close func()
}

// Sample is one measurement of one list.
type Sample struct {
	Time          time.Duration
	Allocs, Bytes float64
}

// Result is what was measured in one case, by contender: connecting and listing, and listing again.
type Result struct {
	Case
	Connect, Repeats map[string][]Sample
}

// Measure lets every contender connect, and list again, in each round, in an order that changes.
func Measure(ctx context.Context, c Case, open func(context.Context, string) (*Client, error), rounds int) (Result, error) {
	r := Result{Case: c, Connect: map[string][]Sample{}, Repeats: map[string][]Sample{}}
	for round := range rounds + 1 {
		for i := range Contenders {
			who := Contenders[(i+round)%len(Contenders)]
			first, repeats, err := measureContender(ctx, c, who, open)
			if err != nil {
				return r, fmt.Errorf("%s: %w", who, err)
			}
			if round > 0 { // the first one warms the machine up
				r.Connect[who] = append(r.Connect[who], first)
				r.Repeats[who] = append(r.Repeats[who], repeats...)
			}
		}
	}
	return r, nil
}

// listsPerConnect is how often a client lists again for each time that it connects.
const listsPerConnect = 3

func measureContender(ctx context.Context, c Case, who string, open func(context.Context, string) (*Client, error)) (Sample, []Sample, error) {
	var client *Client
	first, err := measureTime(func() (err error) {
		client, err = open(ctx, who)
		return err
	})
	if err != nil {
		return first, nil, err
	}
	defer client.Close()
	var repeats []Sample
	for range listsPerConnect {
		s, err := measureTime(func() error {
			n, err := client.List(ctx)
			if err == nil && n != c.Tools {
				err = fmt.Errorf("%d tools instead of %d", n, c.Tools)
			}
			return err
		})
		if err != nil {
			return first, nil, err
		}
		repeats = append(repeats, s)
	}
	return first, repeats, nil
}

func measureTime(f func() error) (Sample, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err := f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return Sample{took, float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)}, err
}

// Median is the median of each figure by itself; the zero Sample of none.
func Median(all []Sample) Sample {
	if len(all) == 0 {
		return Sample{}
	}
	middle := func(figure func(Sample) float64) float64 {
		values := make([]float64, len(all))
		for i, s := range all {
			values[i] = figure(s)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return Sample{
		Time:   time.Duration(middle(func(s Sample) float64 { return float64(s.Time) })),
		Allocs: middle(func(s Sample) float64 { return s.Allocs }),
		Bytes:  middle(func(s Sample) float64 { return s.Bytes }),
	}
}

// Ratio is the median time of a contender divided by mcp-go's; 0 if one is missing.
func Ratio(samples map[string][]Sample, who string) float64 {
	base, own := Median(samples["mcp-go"]).Time, Median(samples[who]).Time
	if base == 0 || own == 0 {
		return 0
	}
	return float64(own) / float64(base)
}
