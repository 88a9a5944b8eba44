package config

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// samplingKey names a key of a file, beside its servers: the program that answers servers which ask for the model.
const samplingKey = "samplingCommand"

// readSampling reads a command line: a text, which Words splits, or a list of words.
func (r *reader) readSampling(v value, p *Parsed) {
	const fix = `write "program argument…", or ["program", "argument…"]`
	var words []string
	// A text is the form that people type; a list needs no quotes inside.
	if l, ok := literalOf(v.Value); ok && l.Kind() == '"' {
		var err error
		if words, err = Words(l.String()); err != nil {
			r.addProblem(r.posOf(v.Value), v.key, err.Error(), "close it, or escape it with a backslash")
			return
		}
	} else {
		// readList records places, and the reader of a whole file has no map for them.
		if r.positions == nil {
			r.positions = map[string]Pos{}
			defer func() { r.positions = nil }()
		}
		if words, ok = r.readList(v, fix, r.readText); !ok {
			return
		}
	}
	if len(words) == 0 || words[0] == "" {
		r.addProblem(r.posOf(v.Value), v.key, "it names no program", fix)
		return
	}
	// A stranger may have written a file that lies in a project, and an approval covers its servers only.
	if p.Scope == messages.ScopeProject || p.Scope == messages.ScopeLocal {
		r.addWarning(r.posOf(v.Value), v.key, "a project file cannot say what answers for the model; the key is dropped",
			"set it in your own file, or use --sampling-command")
		return
	}
	p.SamplingCommand = words
}

// Words splits a command line as --mcp-server does: at spaces, with quotes and backslashes. The error says that a quote
// is not closed.
func Words(line string) ([]string, error) { return splitWords(line) }

// samplingOf returns the command of a managed file, or else of the file with the highest precedence, unless a managed
// file is exclusive. files come lowest precedence first. The result is a copy.
func samplingOf(files []Parsed, exclusive bool) (command []string) {
	managed := []string(nil)
	for _, f := range files {
		switch {
		case f.SamplingCommand == nil:
		case f.Scope == messages.ScopeManaged:
			managed = f.SamplingCommand
		// Files come lowest precedence first, so that the last one stays.
		case !exclusive:
			command = f.SamplingCommand
		}
	}
	if managed != nil {
		command = managed
	}
	return slices.Clone(command)
}
