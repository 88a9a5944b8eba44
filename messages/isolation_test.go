package messages_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// wishes are isolations of every kind: the last sets every field.
var wishes = []*messages.Isolation{
	nil, {}, messages.DefaultIsolation(), {Write: []string{}}, {Read: []string{}, BestEffort: true},
	{PrivateTemp: true, NoNewPrivileges: true, Write: []string{"a"}, Read: []string{"b", "c"}, Network: messages.NetworkNone,
		Memory: 512 << 20, FileSize: 1, Files: 256, CPUTime: messages.Duration(60e9), BestEffort: true,
		OwnSandbox: true},
}

// A wish that got lost on its way would leave a server less isolated than its person believes.
func TestIsolationTravelsWhole(t *testing.T) {
	last := reflect.ValueOf(*wishes[len(wishes)-1])
	for i := range last.NumField() {
		if last.Field(i).IsZero() {
			t.Fatalf("%s is not tried", last.Type().Field(i).Name)
		}
	}
	for _, want := range wishes {
		s := messages.Spec{Command: "x", Isolation: want}
		if got := s.ToProto().ToSpec().Isolation; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v travels as %+v", want, got)
		}
		b, err := json.Marshal(s)
		var second messages.Spec
		if err == nil {
			err = json.Unmarshal(b, &second)
		}
		if err != nil || !reflect.DeepEqual(second.Isolation, want) {
			t.Errorf("%+v is written as %s and read as %+v, %v", want, b, second.Isolation, err)
		}
		shown := s.Redacted().Isolation
		if !reflect.DeepEqual(shown, want) || want != nil && shown == want {
			t.Errorf("%+v is shown as %+v", want, shown)
		}
	}
}

func TestEnforcedAsText(t *testing.T) {
	for want, e := range map[string]*messages.Enforced{
		"":                       nil,
		"private temp, no files": {InForce: []string{"private temp", "no files"}},
		"nothing is in force; not in force: memory (why)": {Missing: []string{"memory (why)"}},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]messages.Size{
		"0": 0, "1": 1, "512MiB": 512 << 20, "512 mib": 512 << 20, "2G": 2 << 30, "1kib": 1024, "7B": 7, "1TiB": 1 << 40,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := messages.ParseSize(text); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "+1", "1.5GiB", "512MB", "1 2", "9223372036854775808", "9000000TiB", "1PiB", "0x10"} {
		if got, err := messages.ParseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"512MiB", "1", "2 g", "-1", "9999999999TiB", "1MB"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := messages.ParseSize(text)
		if err != nil {
			return
		}
		if size < 0 {
			t.Fatalf("%q is %d", text, size)
		}
		second, err := messages.ParseSize(size.String())
		if err != nil || second != size {
			t.Errorf("%q is %s, which is %d, %v", text, size, second, err)
		}
	})
}
