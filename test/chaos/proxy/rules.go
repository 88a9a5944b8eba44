package proxy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// File is a file of rules in YAML:
//
//	seed: 7
//	faults:
//	  - fault: latency
//	    with: {by: 2s, jitter: 500ms}
//	    on: tools/call
//	    tool: echo
//	    chance: 0.3
//	    at: 10s
//	    for: 30s
type File struct {
	// Seed is used if the command line gives none. 0 means 1.
	Seed   uint64       `yaml:"seed,omitempty"`
	Faults []fault.Rule `yaml:"faults"`
}

// ParseFile reads rules and checks them for the place location. Its error is a [*FileError] that names the file, the line and
// the column.
func ParseFile(name string, text []byte, location fault.Location) (File, error) {
	var raw struct {
		Seed   uint64     `yaml:"seed"`
		Faults []fileRule `yaml:"faults"`
	}
	if err := yaml.UnmarshalWithOptions(text, &raw, yaml.Strict()); err != nil {
		return File{}, &FileError{Name: name, Text: yaml.FormatError(err, false, true)}
	}
	f := File{Seed: raw.Seed}
	for i, r := range raw.Faults {
		rule := r.toRule()
		if err := rule.Check(location); err != nil {
			return File{}, &FileError{Name: name, Text: fmt.Sprintf("%s: %v", rulePosition(text, i), err)}
		}
		f.Faults = append(f.Faults, rule)
	}
	return f, nil
}

// fileRule is a fault.Rule whose parameters may be YAML numbers and booleans instead of strings.
type fileRule struct {
	Name      string          `yaml:"name"`
	Fault     string          `yaml:"fault"`
	With      map[string]any  `yaml:"with"`
	Server    string          `yaml:"server"`
	On        string          `yaml:"on"`
	Tool      string          `yaml:"tool"`
	Direction fault.Direction `yaml:"direction"`
	Chance    float64         `yaml:"chance"`
	Nth       int             `yaml:"nth"`
	Times     int             `yaml:"times"`
	At        fault.Duration  `yaml:"at"`
	For       fault.Duration  `yaml:"for"`
	Every     fault.Duration  `yaml:"every"`
}

// toRule converts the parameters to strings.
func (r fileRule) toRule() fault.Rule {
	out := fault.Rule{Name: r.Name, Fault: r.Fault, Server: r.Server, On: r.On, Tool: r.Tool, Direction: r.Direction,
		Chance: r.Chance, Nth: r.Nth, Times: r.Times, At: r.At, For: r.For, Every: r.Every}
	for k, v := range r.With {
		if out.With == nil {
			out.With = map[string]string{}
		}
		out.With[k] = fmt.Sprint(v)
	}
	return out
}

// rulePosition returns line and column of the rule with the index n, or its number if the parser cannot tell.
func rulePosition(text []byte, n int) string {
	path, err := yaml.PathString(fmt.Sprintf("$.faults[%d].fault", n))
	if err == nil {
		if node, err := path.ReadNode(bytes.NewReader(text)); err == nil && node.GetToken() != nil {
			p := node.GetToken().Position
			return fmt.Sprintf("[%d:%d]", p.Line, p.Column)
		}
	}
	return fmt.Sprintf("rule %d", n+1)
}

// FileError means that a file of rules cannot be used.
type FileError struct{ Name, Text string }

// Error implements error.
func (e *FileError) Error() string { return e.Name + ": " + e.Text }

// Watch reads a file of rules again when its size or time changes, until ctx ends; every is the interval of the checks. A file
// with an error changes nothing, and problem gets the error once per change. The rules of the file replace all rules, including
// those that were added in other ways.
func Watch(ctx context.Context, name string, every time.Duration, control *fault.Control, location fault.Location, problem func(error)) {
	read := func() (string, time.Time) {
		info, err := os.Stat(name)
		if err != nil {
			return "", time.Time{}
		}
		return fmt.Sprint(info.Size()), info.ModTime()
	}
	size, changed := read()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		s, c := read()
		if c.IsZero() || s == size && c.Equal(changed) {
			// A missing file is being replaced by an editor.
			continue
		}
		size, changed = s, c
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		f, err := ParseFile(name, text, location)
		if err == nil {
			err = control.Set(f.Faults)
		}
		if err != nil {
			problem(err)
		}
	}
}
