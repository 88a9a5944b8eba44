package servers

import (
	_ "embed"
	"encoding/json"
	"strings"
)

// Tool definitions stand in files, one on each line, because they are sent byte for byte as they stand there.
var (
	// goodTools holds the tools of every server that behaves.
	//
	//go:embed tools/good.jsonl
	goodFile  string
	goodTools = splitLines(goodFile)

	// unusable holds definitions that break the specification, each in its own way.
	//
	//go:embed tools/unusable.jsonl
	unusableFile string
	unusable     = splitLines(unusableFile)

	// usable holds definitions that have broken clients and are valid.
	//
	//go:embed tools/usable.jsonl
	usableFile string
	usable     = splitLines(usableFile)
)

func splitLines(file string) []string { return strings.Split(strings.TrimSpace(file), "\n") }

// GoodTools returns the names of the tools of every server that behaves, in the order of its list.
func GoodTools() []string { return definitionNames(goodTools) }

// UsableTools returns the names of the tools of "bad-schemas" that look odd and are right. That server lists the good
// ones as well.
func UsableTools() []string { return definitionNames(usable) }

// Definition returns the definition of one of those tools as the server sends it; empty for other names.
func Definition(name string) string {
	for _, d := range append(splitLines(goodFile), usable...) {
		if nameOf(d) == name {
			return d
		}
	}
	return ""
}

// definitionNames returns the names in definitions, in their order.
func definitionNames(definitions []string) []string {
	out := make([]string, len(definitions))
	for i, d := range definitions {
		out[i] = nameOf(d)
	}
	return out
}

// nameOf returns the name in a definition of this package's files.
func nameOf(definition string) string {
	var t struct {
		Name string `json:"name"`
	}
	// The files are embedded, so that an error is a mistake in this package.
	if err := json.Unmarshal([]byte(definition), &t); err != nil {
		panic(err)
	}
	return t.Name
}
