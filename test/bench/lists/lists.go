// Package lists measures the cost of a large list of tools: asking for it and registering it in mcpvisor, beside the time that
// mcp-go's client and the official SDK need until they have decoded it, and beside the floor, which only asks for the same
// bytes and reads them.
//
//	go run ./test/bench/run -only lists                                  # 5,000 tools, in one page and in several
//	go run ./test/bench/run -only lists -list-tools 500 -list-servers stdio
//
// The servers answer from bytes that they made before, so that the client is measured; only mcp-go's own in-process server
// computes its answers. Each list differs from the one before by one word of one title, because mcpvisor publishes nothing for
// an unchanged list; that case has a column of its own.
//
// Within its time mcpvisor does more than the others: it names every tool for a model, refuses unusable tools, compares the
// list with the one before, and publishes a snapshot that callers see.
//
// # How it fits
//
// clients.go connects the contenders, servers.go answers with the lists that tools.go makes, and section.go gives the medians to
// command run. [Measure] takes turns as package compare does.
//
// Not promised: that the contenders do the same work; the paragraph above says what mcpvisor does beyond it.
package lists

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Case describes what is listed.
type Case struct {
	// Server is "stdio" or "http", which answer from bytes, or "sdk", mcp-go's server in this process.
	Server string
	// Tools is the number of tools, Page the number on each page; 0 puts all on one.
	Tools, Page int
}

// String names a case in the tables: the server, the tools, and how many stand on a page.
func (c Case) String() string {
	if c.Page == 0 {
		return fmt.Sprintf("%s, %d tools in one page", c.Server, c.Tools)
	}
	return fmt.Sprintf("%s, %d tools in pages of %d", c.Server, c.Tools, c.Page)
}

// Contenders are the clients that are measured. "unchanged" is mcpvisor with a list that stays the same.
var Contenders = []string{"mcpvisor", "unchanged", "mcp-go", "go-sdk", "floor"}

// Client is a connected client that has listed once.
type Client struct {
	// List asks for the whole list again, and returns the number of tools once they can be used.
	List  func(ctx context.Context) (int, error)
	Close func()
}

// Sample holds the measurements of one listing.
type Sample struct {
	Time          time.Duration
	Allocs, Bytes float64
}

// Result holds the samples of one case by contender: of connecting with the first list, and of listing again.
type Result struct {
	Case
	Connect, Repeats map[string][]Sample
}

// Measure lets every contender connect and list again in each round, in an order that changes with the round.
func Measure(ctx context.Context, c Case, open func(context.Context, string) (*Client, error), rounds int) (Result, error) {
	r := Result{Case: c, Connect: map[string][]Sample{}, Repeats: map[string][]Sample{}}
	for round := range rounds + 1 {
		for i := range Contenders {
			who := Contenders[(i+round)%len(Contenders)]
			first, repeats, err := measureContender(ctx, c, who, open)
			if err != nil {
				return r, fmt.Errorf("%s: %w", who, err)
			}
			// The first round warms the machine up, and does not count.
			if round > 0 {
				r.Connect[who] = append(r.Connect[who], first)
				r.Repeats[who] = append(r.Repeats[who], repeats...)
			}
		}
	}
	return r, nil
}

// listsPerConnect is the number of further listings on each connection.
const listsPerConnect = 3

// measureContender connects one contender, lists, and checks the number of tools.
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

// measureTime measures time and allocations of f in the whole process, after a garbage collection.
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

// Median returns the median of each measurement by itself, the zero Sample if there are none.
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

// Ratio returns the median time of a contender divided by mcp-go's, 0 if one is missing.
func Ratio(samples map[string][]Sample, who string) float64 {
	base, own := Median(samples["mcp-go"]).Time, Median(samples[who]).Time
	if base == 0 || own == 0 {
		return 0
	}
	return float64(own) / float64(base)
}
