// Package seeds holds the list of every feature that the five documents which began this project ask for, checkbox or
// not, and binds each to the tests that show it. The list is in features/, one file per document.
//
// A test says what it shows by its first statement:
//
//	seeds.Shows(t, "000.4.connect", "004.fr6.startup")
//
// A feature either is shown by a test or waits for work that is named; anything else fails the test of this package, and
// so does a test that names a feature which is not in the list. `go run ./test/seeds/report -bind` writes the names of
// the tests into the list, where a reader looks for them; `make seeds` runs them and prints what passes and what waits.
//
// # How it fits
//
//	features ── Load ──┐
//	                   ├─ Check ──> the test of this package; command report prints the list and binds names
//	test sources ─ Read┘
//
// [Shows] runs inside of a test, and fails it at once for a feature that is not in the list. Tests of every package may import the
// package; nothing else does.
//
// Not promised: that a test proves its feature. A person has bound the two.
package seeds

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
)

// Feature is one line of the list.
type Feature struct {
	// ID is the document's number, its section, and a word.
	ID string `yaml:"id"`
	// Line says where in the document it stands: "41" or "26-28".
	Line string `yaml:"line"`
	// Text is the feature in our words.
	Text string `yaml:"text"`
	// Waits names the later work that it belongs to: one of Waits.
	Waits string `yaml:"waits"`
	// Test names the tests that show it: folder.TestName.
	Test []string `yaml:"test"`
}

// Waits are the works that a feature may wait for.
var Waits = []string{"authorization", "whole protocol", "data plane", "managing servers", "web page"}

//go:embed features/*.yaml
var files embed.FS

// Load reads the list, in the order of its files.
var Load = sync.OnceValues(func() ([]Feature, error) {
	names, err := fs.Glob(files, "features/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Feature
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var some []Feature
		if err := yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField()).Decode(&some); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, some...)
	}
	return all, nil
})

// Shows declares that the test which calls it shows these features. It fails the test if one is not in the list. The
// ids are string literals and the call stands in the test function itself, because the list is bound by reading the
// sources.
func Shows(tb testing.TB, ids ...string) {
	tb.Helper()
	all, err := Load()
	if err != nil {
		tb.Fatal(err)
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(f Feature) bool { return f.ID == id }) {
			tb.Errorf("no feature %q in test/seeds/features", id)
		}
	}
}
