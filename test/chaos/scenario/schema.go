package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a scenario, for editors that complete and check YAML files by one:
//
//	# yaml-language-server: $schema=scenario.schema.json
//
// A test generates it from the types of this package, their comments and the catalogue of faults. It is weaker than
// Parse, which also checks what fits together.
func Schema() []byte { return slices.Clone(schema) }
