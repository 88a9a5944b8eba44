package servers

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// params holds the key=value arguments of a fixture. A value that cannot be read ends the process, because a test with
// a misspelt value must not pass.
type params map[string]string

// parseParams reads key=value arguments; of equal keys the last one counts.
func parseParams(args []string) params {
	p := params{}
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok {
			failFixture(fmt.Sprintf("parameter %q is not key=value", a))
		}
		p[k] = v
	}
	return p
}

// textOr, intOr and durationOr return the value of a key, or otherwise if it is not given.
func (p params) textOr(key, otherwise string) string {
	if v, ok := p[key]; ok {
		return v
	}
	return otherwise
}

// intOr ends the fixture for a value that is no number: a misspelt parameter must not pass for the default.
func (p params) intOr(key string, otherwise int) int {
	v, ok := p[key]
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		failFixture(fmt.Sprintf("%s=%s is no number", key, v))
	}
	return n
}

// durationOr ends the fixture for a value that is no duration, as intOr does.
func (p params) durationOr(key string, otherwise time.Duration) time.Duration {
	v, ok := p[key]
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		failFixture(fmt.Sprintf("%s=%s is no duration", key, v))
	}
	return d
}
