package campaign

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// Serve makes this process a worker: it runs each task that in brings, one per line, and writes the result to out. It returns
// nil when in ends, or when the process should make no further run, because its heap is full or a run hangs in it. It makes the
// runs of the process exact, see sim.EnableExactRuns.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	sim.EnableExactRuns()
	tasks := bufio.NewReaderSize(in, 1<<20)
	for ctx.Err() == nil {
		line, err := tasks.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the next task cannot be read: %w", err)
		}
		var t Task
		if err := json.Unmarshal(line, &t); err != nil {
			return fmt.Errorf("a task cannot be read: %w", err)
		}
		// If the report cannot be written, neither can the result, and its error counts.
		r := Do(ctx, t, func(text string) { _ = sendResult(out, Result{Seed: t.Seed, Slow: text}) })
		if err := sendResult(out, r); err != nil {
			return err
		}
		if r.Hangs() {
			return nil
		}
		// The collector is off in an exact process, so memory of the runs is freed here.
		if sim.HeapInUse() > collectAbove {
			runtime.GC()
		}
		if isHeapFull() {
			return nil
		}
	}
	return nil
}

// collectAbove is the number of bytes of heap above which a worker collects garbage after a task. A run leaves a few tens of MiB,
// and to collect after each of them took a twentieth of the time.
const collectAbove = 96 << 20

// sendResult writes one result as a line.
func sendResult(out io.Writer, r Result) error {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("a result cannot be written: %w", err)
	}
	return nil
}
