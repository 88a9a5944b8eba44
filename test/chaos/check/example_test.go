package check_test

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
)

func ExampleRun() {
	report, err := check.Run(context.Background(), check.Options{
		Servers: map[string]messages.Spec{"fixture": fixture("noise")},
	})
	if err != nil {
		panic(err)
	}
	for _, server := range report.Servers {
		for _, f := range server.Findings {
			if f.Verdict == check.Fail {
				fmt.Printf("%s: %s: %s\n", server.Name, f.Title, f.Fix)
			}
		}
	}
	// Output: fixture: standard output: log to standard error: the specification allows nothing but messages on standard output, and some clients drop the connection
}
