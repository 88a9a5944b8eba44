package install

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// maxPages bounds the pages of 100 servers that Find reads for a short name.
const maxPages = 20

// Find returns the server that a person means: namespace/server, or a short name that is unique, with @VERSION for a
// certain version. A short name that several servers match is an error that lists them, so that no publisher gets
// chosen by having taken a name first.
func (r *Registry) Find(ctx context.Context, name string) (Entry, error) {
	ref, err := plan.ParseRef(name)
	if err != nil {
		return Entry{}, err
	}
	fullName := ref.Name
	if !ref.Full() {
		// A short name must be compared with every server that has it in its name.
		names, complete, err := r.matchingNames(ctx, ref.Name)
		if err != nil {
			return Entry{}, err
		}
		if fullName, err = plan.Unique(ref.Name, names, complete); err != nil {
			return Entry{}, err
		}
	}
	e, err := r.Server(ctx, fullName, ref.Version)
	// The error of the request does not know what was asked for.
	if !isFound(err) {
		what := fullName
		if ref.Version != "" {
			what += " " + ref.Version
		}
		err = &messages.Error{Op: "install", Class: messages.ClassInvalid, Err: errNotFound,
			Text: "the registry " + r.Host() + " has no " + messages.Line(what, 260),
			Fix:  "mcpvisor search finds servers by a part of their names"}
	}
	return e, err
}

// matchingNames returns the names of all servers that have a word in their names. complete is false if there were too
// many pages, if entries could not be read, or if the registry repeated a cursor; a short name then cannot be unique.
func (r *Registry) matchingNames(ctx context.Context, word string) (names []string, complete bool, err error) {
	seenCursors := map[string]bool{}
	q := Query{Word: word, Limit: 100}
	for range maxPages {
		p, err := r.Search(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for _, e := range p.Entries {
			names = append(names, e.Name)
		}
		if p.Next == "" {
			return names, p.Skipped == 0, nil
		}
		// The registry would send the same pages until maxPages.
		if seenCursors[p.Next] {
			return names, false, nil
		}
		seenCursors[p.Next], q.Cursor = true, p.Next
	}
	return names, false, nil
}
