package edge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// colds is how many agents come where no daemon runs, one after the other.
const colds = 7

// measureCold measures how soon an agent has its first list where no daemon runs and no tools are remembered: with a server that is quick, whose
// tools must be in it, and with one that never answers.
func measureCold(ctx context.Context, program string) (rows []row.Row, err error) {
	command, args := servers.Command("silent")
	mute := fmt.Sprintf(`{"mcpServers":{"one":{"command":%q,"args":["%s"]}}}`, command, strings.Join(args, `","`))
	for _, c := range []struct{ name, config, wanted string }{
		{"agents: without a daemon, from exec to the list", goodServer(), `"one__echo"`},
		{"agents: without a daemon, beside a mute server", mute, `"tools":[`},
	} {
		var firsts []float64
		missing := 0
		for range colds {
			first, text, err := listCold(ctx, program, c.config)
			if err != nil {
				return nil, err
			}
			if !strings.Contains(text, c.wanted) {
				missing++
			}
			firsts = append(firsts, float64(first)/1e6)
		}
		if missing > colds/2 {
			return nil, fmt.Errorf("%s: %d of %d first lists lack %s", c.name, missing, colds, c.wanted)
		}
		rows = append(rows, row.Row{Case: c.name, Unit: "ms", Value: middle(firsts), Target: 300})
	}
	return rows, nil
}

// listCold starts an agent in a new home, and returns how long its first list takes from the start of its bridge.
func listCold(ctx context.Context, program, config string) (first time.Duration, text string, err error) {
	home, leave, err := newHome(ctx, program, config)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, leave()) }()
	began := time.Now()
	a, err := startAgent(ctx, program, home)
	if err != nil {
		return 0, "", err
	}
	defer func() {
		_ = a.in.Close()
		_ = a.cmd.Wait()
	}()
	if _, err = a.ask(1, "initialize", initializeParams); err == nil {
		text, err = a.ask(2, "tools/list", "{}")
	}
	return time.Since(began), text, err
}
