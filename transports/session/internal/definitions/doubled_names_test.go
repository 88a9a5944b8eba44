package definitions

import (
	"strings"
	"testing"
)

// A definition that two programs would read differently is quarantined. Two arguments may be called a and A.
func TestDoubledNamesAreQuarantined(t *testing.T) {
	for raw, want := range map[string]string{
		`{"name":"t","description":"a","description":"b"}`:                                                      `"description" is there twice`,
		`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"\u0061":{}}}}`:         `"a" is there twice`,
		`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","type":"integer"}}}}`:    `at "/inputSchema/properties/a"`,
		`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"A":{"type":"null"}}}}`: "",
	} {
		tool, reason := ReadTool([]byte(raw))
		if tool.Name != "t" || want == "" && reason != "" || !strings.Contains(reason, want) {
			t.Errorf("%s: %q", raw, reason)
		}
	}
}
