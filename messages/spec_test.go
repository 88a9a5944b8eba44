package messages_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestDurationJSON(t *testing.T) {
	for in, want := range map[string]time.Duration{
		`"30s"`: 30 * time.Second, `"1m30s"`: 90 * time.Second, `"0s"`: 0, `"250ms"`: 250 * time.Millisecond,
		`"-1s"`: -time.Second,
	} {
		var d messages.Duration
		if err := json.Unmarshal([]byte(in), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", in, time.Duration(d), err)
		}
		b, err := json.Marshal(d)
		if err != nil {
			t.Error(err)
		}
		var second messages.Duration
		if err := json.Unmarshal(b, &second); err != nil || second != d {
			t.Errorf("%s is written as %s and read as %v, %v", in, b, second, err)
		}
	}
	for _, in := range []string{`30`, `"30"`, `"soon"`, `""`, `{}`, `true`} {
		d := messages.Duration(7)
		if err := json.Unmarshal([]byte(in), &d); err == nil || d != 7 {
			t.Errorf("%s: %v, %v; want an error and the value of before", in, d, err)
		}
	}
	d := messages.Duration(7)
	if err := json.Unmarshal([]byte("null"), &d); err != nil || d != 7 {
		t.Errorf("null: %v, %v", d, err)
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := messages.Duration(rapid.Int64().Draw(t, "d"))
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var second messages.Duration
		if err := json.Unmarshal(b, &second); err != nil || second != d {
			t.Fatalf("%d is written as %s and read as %d, %v", d, b, second, err)
		}
	})
}

func TestSpecKind(t *testing.T) {
	for _, c := range []struct {
		spec messages.Spec
		want messages.TransportKind
	}{
		{messages.Spec{}, ""},
		{messages.Spec{Command: "x"}, messages.Stdio},
		{messages.Spec{URL: "http://h"}, messages.HTTP},
		{messages.Spec{Command: "x", URL: "http://h"}, messages.Stdio},
		{messages.Spec{Type: messages.SSE, URL: "http://h"}, messages.SSE},
		{messages.Spec{Type: messages.SDK}, messages.SDK},
	} {
		if got := c.spec.Kind(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.spec, got, c.want)
		}
	}
}

// TestSpecEqualSeesEveryField sets one field after another: a field that is added later and that Equal does not see
// would let a changed server run on with its old spec.
func TestSpecEqualSeesEveryField(t *testing.T) {
	ignored := map[string]bool{"Scope": true, "Source": true, "Remark": true}
	// What a connection does not depend on. A field that is added later belongs to it until it is listed here.
	adjustable := map[string]bool{"Disabled": true, "Connect": true, "IdleTimeout": true, "ConnectTimeout": true,
		"CallTimeout": true, "MaxCallTimeout": true, "StopGrace": true, "AllowedTools": true, "DeniedTools": true,
		"Trusted": true, "Pin": true, "MaxInFlight": true, "MaxQueued": true,
		"Share": true, "MaxInstances": true, "InstanceIdle": true}
	typ := reflect.TypeFor[messages.Spec]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		var s messages.Spec
		v := reflect.ValueOf(&s).Elem().Field(i)
		switch v.Interface().(type) {
		case map[string]string:
			v.Set(reflect.ValueOf(map[string]string{"k": "v"}))
		case []string:
			v.Set(reflect.ValueOf([]string{"x"}))
		case *bool:
			v.Set(reflect.ValueOf(new(bool)))
		case *messages.Auth:
			v.Set(reflect.ValueOf(&messages.Auth{Type: "none"}))
		case *messages.Isolation:
			v.Set(reflect.ValueOf(messages.DefaultIsolation()))
		case *messages.TLS:
			v.Set(reflect.ValueOf(&messages.TLS{CAFile: "x"}))
		default:
			switch v.Kind() {
			case reflect.String:
				v.SetString("x")
			case reflect.Bool:
				v.SetBool(true)
			case reflect.Int, reflect.Int64:
				v.SetInt(1)
			default:
				t.Fatalf("%s has a kind that this test does not know: %s", f.Name, f.Type)
			}
		}
		if got := s.Equal(messages.Spec{}); got != ignored[f.Name] {
			t.Errorf("%s set: Equal = %v", f.Name, got)
		}
		if got := s.SameConnection(messages.Spec{}); got != (ignored[f.Name] || adjustable[f.Name]) {
			t.Errorf("%s set: SameConnection = %v", f.Name, got)
		}
		if !s.Equal(s) {
			t.Errorf("%s set: not equal to itself", f.Name)
		}
	}
}

func TestSpecEqual(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name string
		a, b messages.Spec
		want bool
	}{
		{"kind written out", messages.Spec{Command: "x"}, messages.Spec{Command: "x", Type: messages.Stdio}, true},
		{"eager written out", messages.Spec{}, messages.Spec{Connect: messages.Eager}, true},
		{"nil and empty", messages.Spec{}, messages.Spec{Args: []string{}, DeniedTools: []string{},
			Env: map[string]string{}, Headers: map[string]string{}, TLS: &messages.TLS{}, Isolation: &messages.Isolation{BestEffort: true}}, true},
		{"all tools and none", messages.Spec{}, messages.Spec{AllowedTools: []string{}}, false},
		{"pointers by value", messages.Spec{InheritEnv: &yes, Auth: &messages.Auth{APIKey: "k"}},
			messages.Spec{InheritEnv: func() *bool { b := true; return &b }(), Auth: &messages.Auth{APIKey: "k"}}, true},
		{"false is not the default of the manager", messages.Spec{InheritEnv: &no}, messages.Spec{}, false},
		{"order of arguments", messages.Spec{Args: []string{"a", "b"}}, messages.Spec{Args: []string{"b", "a"}}, false},
		{"values that are no UTF-8", messages.Spec{Env: map[string]string{"k": "\xfe"}},
			messages.Spec{Env: map[string]string{"k": "\xff"}}, false},
	} {
		if c.a.Equal(c.b) != c.want || c.b.Equal(c.a) != c.want {
			t.Errorf("%s: want %v", c.name, c.want)
		}
	}
}

func TestAllowedToolsJSON(t *testing.T) {
	for want, s := range map[string]messages.Spec{
		`{"command":"x"}`:                      {Command: "x"},
		`{"command":"x","allowedTools":[]}`:    {Command: "x", AllowedTools: []string{}},
		`{"command":"x","allowedTools":["a"]}`: {Command: "x", AllowedTools: []string{"a"}},
	} {
		b, err := json.Marshal(s)
		if err != nil || string(b) != want {
			t.Errorf("%s, %v; want %s", b, err, want)
		}
		var second messages.Spec
		if err := json.Unmarshal(b, &second); err != nil || !second.Equal(s) {
			t.Errorf("%s is read as %+v, %v", b, second, err)
		}
	}
}

// A field that does not travel would be lost on a server that another machine adds.
func TestSpecTLSTravels(t *testing.T) {
	for _, want := range []*messages.TLS{nil, {}, {CAFile: "a", CertFile: "b", KeyFile: "c", ServerName: "d"}} {
		s := messages.Spec{URL: "https://h", TLS: want}
		if got := s.ToProto().ToSpec().TLS; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v travels as %+v", want, got)
		}
		shown := s.Redacted()
		if !reflect.DeepEqual(shown.TLS, want) {
			t.Errorf("%+v is shown as %+v", want, shown.TLS)
		}
		if want != nil && shown.TLS == want {
			t.Error("the redacted spec shares memory with the spec")
		}
	}
}
