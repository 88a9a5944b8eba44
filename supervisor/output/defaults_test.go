package output

import "testing"

func TestDefaultsAreFilledIn(t *testing.T) {
	const form = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":30},"on":{"default":  true}}}`
	for content, want := range map[string]string{
		"":                           `{"age":30,"on":true}`,
		" { } ":                      `{ "age":30,"on":true}`,
		`{"name":"Ann"}`:             `{"name":"Ann","age":30,"on":true}`,
		`{"age":1.0, "on":null }`:    `{"age":1.0, "on":null }`,
		`{"extra":[1] , "on":false}`: `{"extra":[1] , "on":false,"age":30}`,
	} {
		got, err := FillDefaults([]byte(form), []byte(content))
		if err != nil || string(got) != want {
			t.Errorf("%q became %s, %v", content, got, err)
		}
	}
	for _, content := range []string{`[1]`, `{"age":1,"Age":2}`, `{"age":1`} {
		if got, err := FillDefaults([]byte(form), []byte(content)); err == nil {
			t.Errorf("%q became %s", content, got)
		}
	}
	if got, err := FillDefaults([]byte(`{"properties":{"a":{"default":1},"A":{}}}`), nil); err == nil {
		t.Errorf("a form with two readings became %s", got)
	}
}
