package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
)

// TestAProviderThatDoesNotReturnHoldsUpNoEnd: a Config.AuthProvider that does not return, for a server with the default connect timeout, holds
// up neither that the server is disabled nor the end of the manager. The end once waited for 30 s.
func TestAProviderThatDoesNotReturnHoldsUpNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		defer close(stuck) // what was left ends with the test
		asked := make(chan string, 10)
		spec := supervisor.Spec{URL: "http://127.0.0.1:1/mcp"} // nothing is dialled: there are no credentials
		m, err := supervisor.Start(t.Context(), supervisortest.AddTo(supervisor.Config{
			Servers: map[string]supervisor.Spec{"held": spec, "disabled": spec},
			AuthProvider: func(server string, _ supervisor.Spec) (transports.Authorizer, error) {
				asked <- server
				<-stuck
				return nil, nil
			},
		}, supervisortest.NewServer("good", supervisortest.Echo("x"))))
		if err != nil {
			t.Fatal(err)
		}
		<-asked
		<-asked
		if err := m.Ready(t.Context(), "good"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			what string
			do   func() error
		}{
			{"Toggle", func() error { return m.Toggle(t.Context(), "disabled", false) }},
			{"a call", func() error { _, err := m.CallServerTool(t.Context(), "good", "x", nil); return err }},
			{"Close", func() error { return m.Close(t.Context()) }},
		} {
			began := time.Now()
			if err := step.do(); err != nil || time.Since(began) > 5*time.Second {
				t.Errorf("%s after %v: %v", step.what, time.Since(began), err)
			}
		}
	})
}
