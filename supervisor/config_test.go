package supervisor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestAMisspeltPinIsRefused: it once counted as a warning alone, also where the program meant to hold changed tools back.
func TestAMisspeltPinIsRefused(t *testing.T) {
	for want, cfg := range map[string]supervisor.Config{
		`Config.Pin is "holt"`:      {Pin: "holt"},
		`Config.LeastPin is "Hold"`: {LeastPin: "Hold"},
	} {
		m, err := supervisor.Start(t.Context(), cfg)
		if err == nil {
			closeAll(t, m)
		}
		if !errors.Is(err, supervisor.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
