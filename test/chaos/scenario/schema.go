package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a scenario, for editors that complete and check YAML files by one:
//
//	# yaml-language-server: $schema=scenario.schema.json
//
// It is made from the types of this package, their comments and the catalogue of faults. It knows less than Parse, which
// also says what fits together.
func Schema() []byte { return slices.Clone(schema) }
