package client

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

// A daemon that does not confirm the view would show everything, so nothing is passed on to it.
func TestADaemonWithoutViewsIsRefused(t *testing.T) {
	for view, answer := range map[string]string{"": `{"protocol":1,"ready":true}`, "docs": `{"protocol":1,"ready":true,"view":"docs"}`,
		"other": `{"protocol":1,"ready":true,"view":"docs"}`, "none": `{"protocol":1,"ready":true}`} {
		near, far := net.Pipe()
		go func() { // it ends with the pipe
			r := bufio.NewReader(far)
			for _, line := range []string{`{"protocol":1}`, answer} {
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
				_, _ = io.WriteString(far, line+"\n")
			}
		}()
		d := dialer{view: view, lookup: func(string) (string, bool) { return "", false }}
		_, _, err := d.introduce(near)
		if wanted := view == "" || view == "docs"; wanted != (err == nil) || !wanted && !strings.Contains(err.Error(), "knows no views") {
			t.Errorf("view %q, answer %s: %v", view, answer, err)
		}
		_ = near.Close()
	}
}
