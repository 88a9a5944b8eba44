package auth

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
)

// FuzzHelperOutput: whatever a helper prints becomes headers that HTTP allows, or an error that does not repeat it.
func FuzzHelperOutput(f *testing.F) {
	for _, seed := range []string{`{"X-Key":"v"}`, `{}`, `null`, `[]`, `{"a b":"c"}`, `{"A":1}`,
		"{\"A\":\"x\\r\\ny\"}", `{"A":"b"`} {
		f.Add([]byte(seed))
	}
	p := &helper{description: "the helper"}
	f.Fuzz(func(t *testing.T, out []byte) {
		const canary = "canary7f21b0c9aa54"
		headers, err := p.parseHeaders(out)
		for name, value := range headers {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
				t.Errorf("%q: %q", name, value)
			}
		}
		if err == nil {
			return
		}
		_, err = p.parseHeaders(append([]byte(`{"X-Key": "`+canary+`"} `), out...))
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Error(err)
		}
	})
}

// FuzzSealed: what was not sealed with the key and under the name is not opened, and nothing panics.
func FuzzSealed(f *testing.F) {
	s, err := newSealer(make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(sealedMagic))
	f.Add([]byte(plainMagic + "secret"))
	f.Add(s.seal("other", []byte("secret")))
	f.Fuzz(func(t *testing.T, content []byte) {
		if secret, ok := s.open("name", content); ok {
			t.Errorf("opened as %q", secret)
		}
		sealed := s.seal("name", content)
		if secret, ok := s.open("name", sealed); !ok || !bytes.Equal(secret, content) {
			t.Errorf("%q came back as %q", content, secret)
		}
		_, _ = parseHeader("store.json", content)
	})
}
