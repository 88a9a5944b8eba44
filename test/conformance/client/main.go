// Command client is what the conformance suite tests: a program that embeds mcpvisor, connects to the server whose URL
// is its last argument, and uses it as the scenario wants it used. The suite says which scenario it plays in
// MCP_CONFORMANCE_SCENARIO, and in MCP_CONFORMANCE_CONTEXT what the scenario hands to the program.
//
// It knows nothing of the protocol: everything is done through package supervisor, and the protocol version is found
// out by the manager. It ends with 0 if it could do all that it wanted.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

const (
	// totalTimeout bounds the whole program. The suite waits for 30 s, and then does not reliably end what it started.
	totalTimeout = 25 * time.Second
	// server is the id of the one server.
	server = "suite"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// scenarioInput is the JSON that a scenario hands to the program.
type scenarioInput struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`

	// The client's own credentials, registered beforehand, and the authorization server that they are for.
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Issuer       string `json:"issuer"`
	// A key in the place of the secret.
	PrivateKey string `json:"private_key_pem"`
	Algorithm  string `json:"signing_algorithm"`
	// A company's identity provider, and what a person got from it.
	IDPClientID string `json:"idp_client_id"`
	IDPIDToken  string `json:"idp_id_token"`
	IDPIssuer   string `json:"idp_issuer"`
	IDPTokenURL string `json:"idp_token_endpoint"`
	// A workload's assertion.
	Assertion string `json:"valid_jwt"`
}

// run makes a manager, connects the suite's server, plays the scenario and closes. Its error is the exit code 1.
func run(args []string) (err error) {
	if len(args) < 2 {
		return fmt.Errorf("usage: client URL")
	}
	var g scenarioInput
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), totalTimeout)
	defer cancel()
	// Even a bug that ignores ctx must not leave this process behind.
	bug := time.AfterFunc(totalTimeout+2*time.Second, func() {
		fmt.Fprintln(os.Stderr, "client: it did not end when its time was over")
		os.Exit(3)
	})
	defer bug.Stop()

	c := &client{input: g, scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO")}
	cfg := c.managerConfig()
	if cfg.Logger, err = zap.NewDevelopment(); err != nil { // to standard error, which the suite keeps
		return err
	}
	if c.Manager, err = supervisor.Start(ctx, cfg); err != nil {
		return err
	}
	defer func() {
		if e := c.Close(ctx); e != nil && err == nil {
			err = e
		}
	}()
	err = c.Connect(ctx, server, supervisor.Spec{URL: args[len(args)-1]})
	if messages.ClassOf(err) == messages.ClassSession {
		// The server moved to another authorization server while it was being connected. A sign-in there is another account for
		// all that is known, and what was begun for the first one is not gone on with.
		err = c.Reconnect(ctx, server)
	}
	if err != nil {
		return err
	}
	return c.playScenario(ctx)
}
