// Command probe is the program that "pairs" builds against two states of mcpvisor and runs in turns. It measures one thing and
// prints one number, in nanoseconds per operation. It uses only what both states have, so it must stay small.
//
//	probe call CALLERS COUNT     calls of 100 bytes of a stdio server that costs little, through the facade
//	probe start COUNT            Connect of a stdio server, until its tools are registered, and Disconnect
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func main() {
	if servers.Main(os.Args[1:]) {
		return
	}
	if err := runMeasurement(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// runMeasurement parses the arguments and measures.
func runMeasurement(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var numbers []int
	for _, a := range args[1:] {
		n, err := strconv.Atoi(a)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no count", a)
		}
		numbers = append(numbers, n)
	}
	m, err := supervisor.Start(ctx, supervisor.Config{})
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	command, commandArgs := servers.Command("good")
	spec := supervisor.Spec{Command: command, Args: commandArgs}
	switch args[0] {
	case "call":
		return measureCalls(ctx, m, spec, numbers[0], numbers[1])
	case "start":
		return measureStarts(ctx, m, spec, numbers[0])
	}
	return fmt.Errorf("nothing is measured under the name %q", args[0])
}

// measureCalls makes count calls from several goroutines and prints the time per call.
func measureCalls(ctx context.Context, m *supervisor.Manager, spec supervisor.Spec, callers, count int) error {
	if err := m.Connect(ctx, "s", spec); err != nil {
		return err
	}
	args := json.RawMessage(`{"text":"` + strings.Repeat("x", 80) + `"}`)
	run := func(count int) error {
		var remaining atomic.Int64
		remaining.Store(int64(count))
		var group sync.WaitGroup
		failed := make(chan error, callers)
		for range callers {
			group.Go(func() {
				for remaining.Add(-1) >= 0 {
					if _, err := m.CallTool(ctx, "mcp__s__echo", args); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		group.Wait()
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	}
	// The first calls create buffers and grow stacks, and do not count.
	if err := run(max(count/10, callers)); err != nil {
		return err
	}
	started := time.Now()
	if err := run(count); err != nil {
		return err
	}
	fmt.Println(time.Since(started).Nanoseconds() / int64(count))
	return nil
}

// measureStarts connects and disconnects one server count times and prints the time per Connect. A connected server must have
// its tools registered already.
func measureStarts(ctx context.Context, m *supervisor.Manager, spec supervisor.Spec, count int) error {
	var sum time.Duration
	for i := range count {
		started := time.Now()
		if err := m.Connect(ctx, "s", spec); err != nil {
			return err
		}
		if m.Tools().Len() == 0 {
			return fmt.Errorf("start %d: connected, and no tool is registered", i)
		}
		sum += time.Since(started)
		if err := m.Disconnect(ctx, "s"); err != nil {
			return err
		}
	}
	fmt.Println(sum.Nanoseconds() / int64(count))
	return nil
}
