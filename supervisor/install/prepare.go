package install

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// Request is how a server is to be installed.
type Request struct {
	// Way is one of plan.Kinds, or one of them with a colon and what tells it from its like; empty: the best one.
	Way string
	plan.ValueSource
}

// Installation is what can be started, or written into a file.
type Installation struct {
	// Name is what the server may be called in a configuration.
	Name string
	// Choice is which of its packages and remotes it is, and why.
	Choice plan.Choice
	// Result is the spec, and what the person should know.
	plan.Result
}

// Prepare chooses one of the ways of running a server, fetches its bundle if it is one, and asks for what is missing.
func (r *Registry) Prepare(ctx context.Context, e Entry, q Request) (Installation, error) {
	if e.Status == Deleted {
		return Installation{}, e.deletedError(r)
	}
	choice, err := plan.Choose(&e.Server, q.Way, r.o.Machine)
	if err != nil {
		return Installation{}, err
	}
	var bundle *plan.Bundle
	if choice.Kind == plan.MCPB {
		if bundle, err = r.fetchBundle(ctx, choice.Package); err != nil {
			return Installation{}, err
		}
	}
	result, err := plan.Build(choice.Way, q.ValueSource, r.o.Machine, bundle)
	if err != nil {
		return Installation{}, err
	}
	if e.Status == Deprecated {
		text := "its publisher has marked it as deprecated"
		if e.StatusMessage != "" {
			text += ": " + messages.Line(e.StatusMessage, 300)
		}
		result.Notes = append([]string{text}, result.Notes...)
	}
	return Installation{Name: plan.LocalName(e.Name), Choice: choice, Result: result}, nil
}
