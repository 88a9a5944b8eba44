package conformance

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/score"
)

// ServerRuns are the scenarios that the suite plays to the servers of package test/chaos/score, which judge clients: who judges is
// judged by others first. What is left out needs resources, prompts, questions or tools of certain names, which they do not have.
var ServerRuns = []Run{
	{Scenario: "server-initialize", Version: "2025-11-25"},
	{Scenario: "server-session-lifecycle", Version: "2025-11-25"},
	{Scenario: "server-sse-multiple-streams", Version: "2025-11-25"},
	{Scenario: "ping", Version: "2025-11-25"},
	{Scenario: "tools-list", Version: "2025-11-25"},
	{Scenario: "dns-rebinding-protection", Version: "2025-11-25"},
	{Scenario: "tools-list", Version: "2026-07-28"},
	{Scenario: "http-header-validation", Version: "2026-07-28"},
	{Scenario: "dns-rebinding-protection", Version: "2026-07-28"},
	{Scenario: "server-stateless", Version: "2026-07-28"},
}

// onDemand is a check that asks for a change of the tools by a request that no server has to know.
const onDemand = "sep-2575-server-sends-tools-list-changed-on-subscription"

// OneServer plays one scenario to a server of the era of its version. Checks that the server has nothing for do not count.
func (s *Suite) OneServer(ctx context.Context, r Run) Outcome {
	begin := time.Now()
	o := Outcome{Run: r, Folder: filepath.Join(s.Output, "server", r.Version, filepath.FromSlash(r.Scenario))}
	url, stop, err := score.StartSite(r.Version == "2026-07-28")
	if err != nil {
		o.Problem = err.Error()
		return o
	}
	defer stop()
	o.Checks, o.Problem = s.runScenario(ctx, o.Folder, s.Output, "server", "--url", url,
		"--scenario", r.Scenario, "--spec-version", r.Version)
	o.Took = time.Since(begin)
	for i, c := range o.Checks {
		if c.ID == onDemand || strings.HasPrefix(c.ErrorMessage, "Not testable: server does not list the diagnostic tool") {
			o.Checks[i].Status = "SKIPPED"
		}
	}
	return o
}
