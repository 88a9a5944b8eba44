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

// Serve is a worker: it runs each task that in brings, one per line, and writes its result. It returns when in ends, or when
// the process has grown too large for another run. It makes the runs of the process exact.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	sim.Exact()
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
		answer, err := json.Marshal(Do(ctx, t))
		if err != nil {
			return fmt.Errorf("a result cannot be written: %w", err)
		}
		if _, err := out.Write(append(answer, '\n')); err != nil {
			return fmt.Errorf("a result cannot be written: %w", err)
		}
		runtime.GC()
		if isTired() {
			return nil
		}
	}
	return nil
}
