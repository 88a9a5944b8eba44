package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Kind says where an input goes, and so how it is given beforehand.
type Kind string

const (
	// Environment is a variable of the server's environment.
	Environment Kind = "environment variable"
	// Header is a header of its requests.
	Header Kind = "header"
	// ArgumentInput is an argument, by its flag or its hint.
	ArgumentInput Kind = "argument"
	// Variable is a part of one of the others, or of a URL.
	Variable Kind = "variable"
	// Setting is one of a bundle's own settings.
	Setting Kind = "setting"
)

// Input is a value that a person is asked for. The texts are the publisher's, and not neutralised.
type Input struct {
	Kind Kind
	// Name is what it is called, and what Given names it by: a variable, a header, a flag or a hint.
	Name string
	// Parent names the value that a variable is a part of.
	Parent                   string
	Description, Placeholder string
	// Default is what is taken if nothing is typed, if HasDefault.
	Default    string
	HasDefault bool
	// Secret values are typed without echo and never shown.
	Secret bool
	// Repeated inputs take any number of values.
	Repeated bool
	// Format is string, number, boolean or filepath.
	Format  string
	Choices []string
}

// GivenValues are the values that the person gave beforehand. They may hold references (${TOKEN}), which stay references in
// the entry.
type GivenValues struct {
	// Env and Headers also take what the document does not name.
	Env, Headers map[string]string
	// Args are arguments (by flag, with or without its dashes, or by hint), variables and settings.
	Args map[string][]string
}

// ValueSource is where values come from.
type ValueSource struct {
	GivenValues
	// Ask is called for each required input that was not given, in the order of the document. No value means that there is
	// none; the default is Ask's to return, if it is wanted. nil is Defaults.
	Ask func(Input) ([]string, error)
}

// Defaults answers with the defaults, for where nobody can be asked.
func Defaults(in Input) ([]string, error) {
	if in.HasDefault {
		return []string{in.Default}, nil
	}
	return nil, nil
}

// Check says what is wrong with a value, as a clause that does not quote it; nil if nothing is. References are not looked
// into.
func (in Input) Check(v string) error {
	switch {
	case strings.Contains(v, reference):
		return nil
	case strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r == 0x7f }):
		return fmt.Errorf("it holds a control character")
	case len(in.Choices) > 0 && !slices.Contains(in.Choices, v):
		return fmt.Errorf("it is none of %s", messages.Line(strings.Join(in.Choices, ", "), 200))
	case in.Format == "number":
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return fmt.Errorf("it is no number")
		}
	case in.Format == "boolean" && v != "true" && v != "false":
		return fmt.Errorf("it is neither true nor false")
	}
	return nil
}

// personText are a value that the person gave for the input.
func (in Input) personText(v string) mixedText {
	return mixedText{{text: v, fromPerson: true, secret: in.Secret}}
}

// flagHelp is how the input is given on the command line.
func (in Input) flagHelp() string {
	name := messages.Line(in.Name, 60)
	switch in.Kind {
	case Environment:
		return "--env " + name + "=…"
	case Header:
		return "--header '" + name + ": …'"
	default:
		return "--arg " + strings.TrimLeft(name, "-") + "=…"
	}
}

// Label is what the input is called in a sentence.
func (in Input) Label() string {
	text := string(in.Kind) + " " + messages.Line(in.Name, 80)
	if in.Parent != "" {
		text += " of " + messages.Line(in.Parent, 80)
	}
	return text
}
