package install

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// Request says how a server is to be installed.
type Request struct {
	// Way is one of plan.Kinds, or one of them with a colon and what distinguishes it (npm:@scope/name); with an empty
	// one, plan.Choose takes the best.
	Way string
	plan.ValueSource
}

// Installation can be started, or written into a file.
type Installation struct {
	// Name is the proposed name of the server in a configuration.
	Name string
	// Choice says which of the packages and remotes was taken, and why.
	Choice plan.Choice
	// Result holds the spec, and notes that the person should read.
	plan.Result
}

// Prepare chooses one of the ways of running a server, downloads its bundle if it is one, and asks for missing values.
// A deleted server is an error; a deprecated one gets a note.
func (r *Registry) Prepare(ctx context.Context, e Entry, q Request) (Installation, error) {
	if e.Status == Deleted {
		return Installation{}, e.deletedError(r)
	}
	choice, err := plan.Choose(&e.Server, q.Way, r.o.Machine)
	if err != nil {
		return Installation{}, err
	}
	var bundle *plan.Bundle
	// A bundle says only in its manifest how it is started, so that it is downloaded before any question.
	if choice.Kind == plan.MCPB {
		if bundle, err = r.fetchBundle(ctx, choice.Package); err != nil {
			return Installation{}, err
		}
	}
	result, err := plan.Build(choice.Way, q.ValueSource, r.o.Machine, bundle)
	if err != nil {
		return Installation{}, err
	}
	// The note stands first, because it concerns the decision itself.
	if e.Status == Deprecated {
		text := "its publisher has marked it as deprecated"
		if e.StatusMessage != "" {
			text += ": " + messages.Line(e.StatusMessage, 300)
		}
		result.Notes = append([]string{text}, result.Notes...)
	}
	return Installation{Name: plan.LocalName(e.Name), Choice: choice, Result: result}, nil
}
