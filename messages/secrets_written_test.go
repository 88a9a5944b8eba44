package messages_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

const pem = "-----BEGIN KEY-----\nMIIEvCANARYabcdefghijklmnop/qrst+uv==\nsecondCANARYlineofthekey0123456789\nshort\n-----END KEY-----\n"

// A secret is hidden however a program writes it.
func TestSecretsAreHiddenHoweverTheyAreWritten(t *testing.T) {
	for _, secret := range []string{pem, `{"type":"CANARY","key":"a b"}`, "pä/CANARY<ss>&+ %", "CANARY 'q' (x)!*😀"} {
		spec := messages.Spec{Env: map[string]string{"V": secret}}
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		var plain strings.Builder
		e := json.NewEncoder(&plain)
		e.SetEscapeHTML(false)
		_ = e.Encode(secret)
		texts := []string{
			secret, string(quoted), string(quoted[1 : len(quoted)-1]), plain.String(), strings.ReplaceAll(plain.String(), "/", `\/`),
			"https://x/?q=" + url.QueryEscape(secret) + "&b=1", "/a/" + url.PathEscape(secret) + "/b",
			strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"), (&url.URL{Path: "/" + secret}).EscapedPath(),
		}
		for line := range strings.SplitSeq(secret, "\n") {
			if len(line) >= 16 {
				texts = append(texts, "the line "+line+" is bad")
			}
		}
		for _, text := range texts {
			if got := spec.RedactText(text); strings.Contains(got, "CANARY") {
				t.Errorf("%q shows %q", text, got)
			}
		}
	}
}

func TestWrittenFormsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "a b/%d ", i*i)
	}
	long := b.String()
	forms := messages.WrittenForms([]string{long, "plain-word", "tiny"})
	text := long
	for i, f := range forms {
		if len(f) > messages.LongestWritten || len(f) < 6 || i > 0 && len(f) > len(forms[i-1]) {
			t.Errorf("a form of %d bytes", len(f))
		}
		text = strings.ReplaceAll(text, f, "#")
	}
	if strings.Contains(text, "a b/") || forms[len(forms)-1] != "plain-word" {
		t.Errorf("left: %q, %q", text, forms[len(forms)-1])
	}
}
