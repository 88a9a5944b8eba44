package loop_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/loop"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func TestMain(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// README quotes what the loop prints. The times alone are others: the bound is shorter here.
func TestReadmeQuotesTheLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a server that never answers")
	}
	var out strings.Builder
	loop.Play(5*time.Second, &out)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := "```\n" + untimed(out.String()) + "```\n"
	if !strings.Contains(untimed(string(readme)), quoted) {
		t.Errorf("README does not quote, times left out:\n%s", quoted)
	}
}

func untimed(text string) string {
	return regexp.MustCompile(`(?m)^ +\d+\.\ds`).ReplaceAllString(text, "TIME")
}
