package supervisor

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// Problem is one fault of a configuration file, with its file, line and column, and how to repair it.
type Problem = config.Problem

// FromFiles reads the configuration that belongs to a directory, exactly as the mcpvisor command does there: the
// project's .mcp.json and .mcpvisor/mcp.json, the person's own files, and the organisation's. It returns a Config whose
// Servers, Managed, Access, Pin and LeastPin are set; the program may change it before Start.
//
// Problems holds every fault that was found, warnings included. A server with a fault stands in Servers all the same: it
// appears as failed with the fault as its reason. So does one from a project file that the person has not approved (with
// "mcpvisor approve"), because a file that merely lies in a directory must not start programs. The error is about dir, or says
// that there are files and none of them can be read.
func FromFiles(dir string) (Config, []Problem, error) {
	found, err := discover.Load(discover.Options{Dir: dir})
	if err != nil {
		return Config{}, nil, err
	}
	if found.Unreadable() {
		first := found.Problems[0]
		return Config{}, found.Problems, &Error{Op: "configure", Class: messages.ClassInvalid, Text: first.Error(), Err: first}
	}
	return Config{Servers: found.Specs, Managed: found.Policies, Access: found.Permissions, Pin: found.Pin.Own,
		LeastPin: found.Pin.Least}, found.Problems, nil
}
