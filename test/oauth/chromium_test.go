//go:build unix

package oauth_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chromium"
)

// TestLoginInChromium is the whole way with a real browser: its redirects, its cookies, its view of the last page. With
// SCREENSHOT set to a file, the last page is kept there as a picture.
func TestLoginInChromium(t *testing.T) {
	b := chromium.Start(t, "a sign-in in a real browser")
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	checkWholeSignIn(t, as, p, server, func(page string) {
		b.Open(page)
		var text string
		for deadline := time.Now().Add(bound); !strings.Contains(text, "mcpvisor has the answer"); {
			b.Run(&text, "return document.body ? document.body.innerText : ''")
			if time.Now().After(deadline) {
				t.Fatalf("the browser shows %q", text)
			}
		}
		if !strings.Contains(text, "You may close this window.") {
			t.Errorf("the last page says %q", text)
		}
		// The page is all that was loaded for it.
		for _, name := range b.Loaded() {
			t.Errorf("the last page has loaded %s", name)
		}
		if file := os.Getenv("SCREENSHOT"); file != "" {
			if err := os.WriteFile(file, b.Picture(), 0o600); err != nil {
				t.Errorf("no picture: %v", err)
			}
		}
	})
}
