package campaign_test

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/test/chaos/campaign"
)

func Example() {
	pool := campaign.NewPool(commandAs("worker"), 2)
	defer pool.Close()
	s := campaign.Run(context.Background(), pool, campaign.Seeds(shortTask, 1, 4), nil)
	fmt.Println(s.Runs, "runs,", len(s.Failed), "violate something,", len(s.Errors), "could not be run")
	// Output: 4 runs, 0 violate something, 0 could not be run
}
