package oauth

import (
	"os"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
)

func TestMain(m *testing.M) { os.Exit(conntest.RunAndCheckLeaks(m)) }
