package servers

import (
	_ "embed"
	"encoding/json"
	"strings"
)

// Tool definitions stand in files, one a line, because they are sent byte for byte as they stand there.
var (
	// goodTools is what every server that behaves offers.
	//
	//go:embed tools/good.jsonl
	goodFile  string
	goodTools = splitLines(goodFile)

	// unusable are definitions that break the specification, each in its own way.
	//
	//go:embed tools/unusable.jsonl
	unusableFile string
	unusable     = splitLines(unusableFile)

	// usable are definitions that broke clients and are right.
	//
	//go:embed tools/usable.jsonl
	usableFile string
	usable     = splitLines(usableFile)
)

func splitLines(file string) []string { return strings.Split(strings.TrimSpace(file), "\n") }

// GoodTools names the tools of every server that behaves, in the order of its list.
func GoodTools() []string { return definitionNames(goodTools) }

// UsableTools names the tools of "bad-schemas" that look odd and are right. It lists the good ones as well.
func UsableTools() []string { return definitionNames(usable) }

// Definition is the definition of one of those tools as the server sends it.
func Definition(name string) string {
	for _, d := range append(splitLines(goodFile), usable...) {
		if nameOf(d) == name {
			return d
		}
	}
	return ""
}

func definitionNames(definitions []string) []string {
	out := make([]string, len(definitions))
	for i, d := range definitions {
		out[i] = nameOf(d)
	}
	return out
}

func nameOf(definition string) string {
	var t struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(definition), &t); err != nil { // our own file
		panic(err)
	}
	return t.Name
}
