package client

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"time"
)

// labelKey is the label of the goroutines of one day in real time; each goroutine has it from the one that started it.
const labelKey = "chaos-client-day"

var dayCount atomic.Int64

// goroutinesLeftBy calls f in a goroutine with a label, and returns the stacks of the goroutines that f has left, as far as they do not
// end within a second.
func goroutinesLeftBy(f func()) (stacks []string) {
	label := fmt.Sprint(dayCount.Add(1))
	done := make(chan struct{})
	go pprof.Do(context.Background(), pprof.Labels(labelKey, label), func(context.Context) {
		defer close(done)
		f()
	})
	<-done
	for range 10 {
		if stacks = stacksLabelled(label); len(stacks) == 0 {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return stacks
}

// labelledPattern matches the first lines of a group of goroutines in a profile: how many there are, and their labels.
var labelledPattern = regexp.MustCompile(`^(\d+) @.*\n# labels: \{.*"` + labelKey + `":"(\d+)".*\}\n`)

// stacksLabelled returns the stacks of the goroutines with a label, once for each goroutine.
func stacksLabelled(label string) (stacks []string) {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return nil
	}
	for group := range strings.SplitSeq(b.String(), "\n\n") {
		m := labelledPattern.FindStringSubmatch(strings.TrimLeft(dropTotal(group), "\n"))
		if m == nil || m[2] != label {
			continue
		}
		n := 1
		_, _ = fmt.Sscan(m[1], &n) // the pattern has only digits there
		for range n {
			stacks = append(stacks, stackOf(group))
		}
	}
	return stacks
}

// dropTotal takes the first line of a profile away, which counts all goroutines.
func dropTotal(group string) string {
	if strings.HasPrefix(group, "goroutine profile:") {
		_, group, _ = strings.Cut(group, "\n")
	}
	return group
}

// stackOf writes a group of a profile as a stack, with a call per line: "#	0x4a5b3c	net/http.(*conn).serve+0x68b	/usr/…/server.go:2067".
func stackOf(group string) string {
	var b strings.Builder
	for line := range strings.Lines(group) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == "#" && strings.HasPrefix(fields[1], "0x") {
			name := fields[2]
			if i := strings.LastIndexByte(name, '+'); i > 0 {
				name = name[:i]
			}
			b.WriteString(name + "()\n")
		}
	}
	return b.String()
}
