package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A GatewayCase is one way in which the suite's scenarios for servers are played through the gateway: to the Go SDK's everything-server
// behind it, over a transport, in an era.
type GatewayCase struct {
	// Upstream is "stdio" or "http", Era that of the server; Version the one that the suite plays to the gateway.
	Upstream, Version string
	Era               messages.Era
}

// GatewayCases are the cases: each set in the era of its version, and across the eras.
var GatewayCases = []GatewayCase{
	{"stdio", "2025-11-25", messages.EraLegacy}, {"stdio", "2026-07-28", messages.EraModern},
	{"http", "2025-11-25", messages.EraLegacy}, {"http", "2026-07-28", messages.EraModern},
	{"stdio", "2025-11-25", messages.EraModern}, {"stdio", "2026-07-28", messages.EraLegacy},
	{"http", "2025-11-25", messages.EraModern}, {"http", "2026-07-28", messages.EraLegacy},
}

// String is UPSTREAM-ERA/VERSION, of the server and of the suite.
func (c GatewayCase) String() string { return c.Upstream + "-" + string(c.Era) + "/" + c.Version }

// Across reports whether the server speaks the other era.
func (c GatewayCase) Across() bool {
	return (c.Version == "2026-07-28") != (c.Era == messages.EraModern)
}

// Runs returns the scenarios of a case: what its version requires of a server. Those of a case across eras have names of their own
// among the expected failures.
func (c GatewayCase) Runs(folder string) ([]Run, error) {
	set, err := readRequirements(filepath.Join(folder, c.Version+".yaml"))
	if err != nil {
		return nil, err
	}
	runs := make([]Run, len(set.Server))
	for i, scenario := range set.Server {
		runs[i] = Run{Scenario: scenario, Version: c.Version}
	}
	return runs, nil
}

// JudgeOutcome compares the outcome of a scenario of a case with what was expected, and returns its problems in lines; none
// if it is as expected. The entries of expected-failures.yaml have the case's name before that of the scenario:
// gateway/stdio-modern/tools-call-sampling.
func (c GatewayCase) JudgeOutcome(o Outcome, expected []ExpectedFailure) (problems []string) {
	r := o.Run
	r.Scenario = "gateway/" + c.Upstream + "-" + string(c.Era) + "/" + r.Scenario
	switch findExpected(expected, r).outcomeState(o) {
	case stale:
		return []string{"expected-failures.yaml is stale: " + r.Scenario + " passes"}
	case fails:
		return append([]string{"failed and may not: " + r.Scenario}, o.Reasons()...)
	}
	return nil
}

// SplitExpected parts the expected failures of the gateway from those of the client.
func SplitExpected(all []ExpectedFailure) (client, through []ExpectedFailure) {
	for _, e := range all {
		if strings.HasPrefix(e.Scenario, "gateway/") {
			through = append(through, e)
		} else {
			client = append(client, e)
		}
	}
	return client, through
}

// A GatewayStand is a gateway with the server of one case behind it.
type GatewayStand struct {
	URL  string
	Case GatewayCase
	end  []func()
}

// OpenGateway starts the server of a case, and the gateway before it, and waits until it is connected.
func OpenGateway(ctx context.Context, c GatewayCase, everything string) (s *GatewayStand, err error) {
	s = &GatewayStand{Case: c}
	defer func(opened *GatewayStand) {
		if err != nil {
			opened.Close() // s is nil by then
		}
	}(s)
	spec := supervisor.Spec{Command: everything, Era: c.Era}
	if c.Upstream == "http" {
		if spec, err = s.serveHTTP(ctx, everything); err != nil {
			return nil, err
		}
	}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"everything": spec}}
	gateway.PassQuestions(&cfg)
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.end = append(s.end, func() {
		within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = m.Close(within) // the run has been judged by then
	})
	ready, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := m.Ready(ready, "everything"); err != nil {
		return nil, err
	}
	g := gateway.New(gateway.Config{Manager: m, Prefix: gateway.PrefixNever})
	h := serve.NewHandler(serve.Options{Service: g})
	server := httptest.NewServer(h)
	s.end = append(s.end, g.Close, func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL = server.URL + "/mcp"
	return s, nil
}

// serveHTTP starts the server at a free port and returns its spec.
func (s *GatewayStand) serveHTTP(ctx context.Context, everything string) (supervisor.Spec, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return supervisor.Spec{}, err
	}
	address := l.Addr().String()
	_ = l.Close() // the server takes the port next
	cmd := exec.CommandContext(ctx, everything, "-http", address, fmt.Sprintf("-stateless=%t", s.Case.Era == messages.EraModern))
	if err := cmd.Start(); err != nil {
		return supervisor.Spec{}, err
	}
	s.end = append(s.end, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return supervisor.Spec{Type: messages.HTTP, URL: "http://" + address, Era: s.Case.Era}, nil
}

// Close ends the gateway and the server.
func (s *GatewayStand) Close() {
	for _, end := range slices.Backward(s.end) {
		end()
	}
}

// AllThrough plays the set of the stand's case to its gateway, in one process, because Node needs longer to start than a scenario takes,
// and returns the outcomes of runs. One scenario follows the other: a server of the legacy era over stdio does not say about which
// request it asks, so the question of one scenario would be refused while another one has a request at the server.
func (s *Suite) AllThrough(ctx context.Context, stand *GatewayStand, runs []Run) (outcomes []Outcome) {
	begin := time.Now()
	folder := filepath.Join(s.Output, "gateway", filepath.FromSlash(stand.Case.String()))
	e := s.runSuite(ctx, setTime, folder, s.Output, "server", "--url", stand.URL, "--requirements", stand.Case.Version)
	for _, r := range runs {
		o := Outcome{Run: r, Took: time.Since(begin)}
		o.Folder, o.Problem = scenarioFolder(folder, r.Scenario)
		if e.problem != "" {
			o.Problem = e.problem
		} else if o.Problem == "" {
			var err error
			if o.Checks, err = readChecks(o.Folder); err != nil {
				o.Problem = err.Error()
			}
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// scenarioFolder returns where the suite wrote what it saw in a scenario of a set: server-NAME-TIME. problem is empty if there is one.
func scenarioFolder(folder, scenario string) (path, problem string) {
	all, err := filepath.Glob(filepath.Join(folder, "server-"+scenario+"-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*"))
	if err != nil {
		return folder, err.Error()
	}
	if len(all) != 1 {
		return folder, fmt.Sprintf("the suite wrote %d times what it saw, in %s", len(all), folder)
	}
	return all[0], ""
}
