package redact

import (
	"strings"
	"testing"
)

func TestSecretsAreHidden(t *testing.T) {
	s := NewForChild([]string{"postgres://u:pw@host/db", "ghp_canary_and_more"},
		[]string{"GITHUB_TOKEN=ghp_canary", "OPENAI_API_KEY=sk-canary", "db_password=canary-pw", "HOME=/home/me",
			"MY_SECRET=short", "MODE=production"})
	in := "ghp_canary ghp_canary_and_more sk-canary canary-pw postgres://u:pw@host/db short production /home/me"
	want := strings.Repeat("[redacted] ", 5) + "short production /home/me"
	if got := s.RedactText(in); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := NewForChild(nil, nil).RedactText(in); got != in {
		t.Errorf("nothing to hide, and %s", got)
	}
}
