package scenario

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

//go:embed library/*.yaml
var files embed.FS

// readLibrary parses the embedded scenarios at its first call. It panics at a fault, which a test of this package finds
// before a program is released.
var readLibrary = sync.OnceValues(func() ([]Scenario, map[string]string) {
	entries, err := files.ReadDir("library")
	if err != nil {
		panic(fmt.Sprintf("the library of scenarios is not in this program: %v", err))
	}
	var list []Scenario
	texts := map[string]string{}
	for _, e := range entries { // sorted by name
		file := path.Join("library", e.Name())
		b, err := files.ReadFile(file)
		if err != nil {
			panic(err)
		}
		s, err := Parse(file, b)
		if err != nil {
			panic(err)
		}
		list, texts[s.Name] = append(list, s), string(b)
	}
	return list, texts
})

// Library returns the scenarios that come with the harness, sorted by name. They are copies, which the caller may
// change.
func Library() []Scenario {
	list, _ := readLibrary()
	out := make([]Scenario, len(list))
	for i, s := range list {
		out[i] = s.Clone()
	}
	return out
}

// Named returns one scenario of the library; false if there is none of that name.
func Named(name string) (Scenario, bool) {
	for _, s := range Library() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// Text returns the file of a scenario of the library, with its comments: to be read, copied and changed.
func Text(name string) (string, bool) {
	_, texts := readLibrary()
	text, ok := texts[name]
	return text, ok
}

// Nearest returns the name in the library that a word was probably meant to be, or empty.
func Nearest(word string) string {
	var names []string
	for _, s := range Library() {
		names = append(names, s.Name)
	}
	return messages.Nearest(strings.TrimSuffix(word, ".yaml"), names)
}
