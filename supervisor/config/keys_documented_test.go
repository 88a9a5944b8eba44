package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The topic "configuration" explains each key of an entry and of a file, and none that does not exist. The names that
// other clients give to the same keys stand in no table, because a person need not write them.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../cmd/mcpvisor/help/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(string(text), "\n## Keys of an entry\n")
	entry, rest, ok := strings.Cut(entry, "\n## ")
	if !ok {
		t.Fatal("there is no section of the keys of an entry")
	}
	documented := firstColumn(entry)
	for key, f := range fields {
		if key == f.means && !documented[key] {
			t.Errorf("the key %q of an entry is not explained", key)
		}
	}
	spec := reflect.TypeFor[messages.Spec]()
	for i := range spec.NumField() {
		key, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		kind := spec.Field(i).Type
		for kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		plain := kind == reflect.TypeFor[string]() || kind == reflect.TypeFor[bool]() || kind == reflect.TypeFor[messages.Duration]()
		if key != "-" && specReaders[key] == nil && !plain {
			t.Errorf("nothing reads the key %q, a %s: it needs a row in specReaders", key, kind)
		}
	}
	for key := range documented {
		if _, ok := fields[key]; !ok {
			t.Errorf("the key %q is explained, and no entry has it", key)
		}
	}
	_, file, _ := strings.Cut(rest, "## Keys beside the servers\n")
	file, _, _ = strings.Cut(file, "\n## ")
	if explained := firstColumn(file); len(explained) < 5 {
		t.Errorf("of the keys of a file only %v are explained", explained)
	}
}

// The topic "gateway" explains each key of gateway.
func TestEveryKeyOfTheGatewayIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../cmd/mcpvisor/help/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range [][]string{gatewayKeys, viewKeys, principalKeys, tokenKeys} {
		for _, key := range keys {
			if !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("the key %q is not explained", key)
			}
		}
	}
}

// firstColumn returns the words in backquotes of the first cells of a table.
func firstColumn(table string) map[string]bool {
	words := map[string]bool{}
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, found := range code.FindAllStringSubmatch(cells[1], -1) {
				words[found[1]] = true
			}
		}
	}
	return words
}
