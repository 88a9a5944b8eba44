package arch

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// leanTag leaves the test bench and the demo out of a build of the command.
const leanTag = "nochaos"

// leanNever lists what such a build must not link, each with everything below it.
var leanNever = []string{
	"testing", Module + "/test", Module + "/transports/transporttest", Module + "/transports/fault",
	Module + "/cmd/mcpvisor/internal/harness", Module + "/cmd/mcpvisor/internal/chaos", Module + "/cmd/mcpvisor/internal/demo",
	// The clients and servers of other projects. Package oauthex of the Go SDK is none: it reads documents of OAuth.
	"github.com/mark3labs/mcp-go", "github.com/modelcontextprotocol/go-sdk/mcp",
}

// LoadLean asks the go command for all packages that a build of the command without the test bench links, on any system.
func LoadLean(root string) ([]string, error) {
	var deps []string
	for _, system := range Systems {
		cmd := exec.Command("go", "list", "-deps", "-tags", leanTag, "./cmd/mcpvisor")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		deps = sortedUnion(deps, strings.Fields(string(out)))
	}
	return deps, nil
}

// Lean returns the packages that a build without the test bench links and must not.
func Lean(deps []string) []string {
	return slices.DeleteFunc(slices.Clone(deps), func(d string) bool {
		return !slices.ContainsFunc(leanNever, func(never string) bool { return isWithin(never, d) })
	})
}
