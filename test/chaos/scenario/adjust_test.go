package scenario_test

import (
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// An adjust that denies no tools leaves a server as it is that denied none: a set of servers with it changes nothing (seed 20887228).
func TestAnAdjustToTheSameIsNone(t *testing.T) {
	none := scenario.Server{Name: "s1"}
	for _, with := range []map[string]string{{"deny": ""}, {"refuse": ""}, {"maxInFlight": "0"}} {
		if got := none.Adjusted(with); !reflect.DeepEqual(got, none) {
			t.Errorf("adjusted with %v it is %+v", with, got)
		}
	}
	if got := none.Adjusted(map[string]string{"deny": "put"}).Adjusted(map[string]string{"deny": ""}); !reflect.DeepEqual(got, none) {
		t.Errorf("denied and allowed again it is %+v", got)
	}
}
