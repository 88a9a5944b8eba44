package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Kind says where an input goes, and so by which flag it is given beforehand.
type Kind string

const (
	// Environment is a variable of the server's environment.
	Environment Kind = "environment variable"
	// Header is a header of the requests to the server.
	Header Kind = "header"
	// ArgumentInput is an argument, named by its flag or its hint.
	ArgumentInput Kind = "argument"
	// Variable is a part of one of the others, or of a URL.
	Variable Kind = "variable"
	// Setting is one of a bundle's own settings.
	Setting Kind = "setting"
)

// Input is a value that a person is asked for. The texts are the publisher's and are not escaped.
type Input struct {
	Kind Kind
	// Name is the name by which GivenValues refers to it: a variable, a header, a flag or a hint.
	Name string
	// Parent names the value that a variable is a part of.
	Parent                   string
	Description, Placeholder string
	// Default counts only if HasDefault is set. Ask returns it if the person types nothing.
	Default    string
	HasDefault bool
	// Secret values are typed without echo and never shown.
	Secret bool
	// Repeated inputs take any number of values.
	Repeated bool
	// Format is string, number, boolean or filepath; empty means string.
	Format string
	// Choices, if there are any, lists the only allowed values.
	Choices []string
}

// GivenValues holds the values that the person gave beforehand. They may contain references (${TOKEN}), which stay
// references in the entry.
type GivenValues struct {
	// Env and Headers may also have names that the document does not declare.
	Env, Headers map[string]string
	// Args holds arguments (by flag, with or without its dashes, or by hint), variables and settings. A name without a
	// place is an error.
	Args map[string][]string
}

// ValueSource provides the values of a document: given ones, and answers.
type ValueSource struct {
	GivenValues
	// Ask is called for each required input that was not given, in the order of the document. No value means that there
	// is none, which is an error of Build; Ask returns the default itself if it is wanted. With nil, Defaults answers.
	Ask func(Input) ([]string, error)
}

// Defaults answers with the defaults, for callers without a person.
func Defaults(in Input) ([]string, error) {
	if in.HasDefault {
		return []string{in.Default}, nil
	}
	return nil, nil
}

// Check says what is wrong with a value, as a clause that does not quote it; nil if nothing is. A value with a
// reference is accepted, because its content is known only when the entry is read.
func (in Input) Check(v string) error {
	switch {
	case strings.Contains(v, reference):
		return nil
	// Tabs and line breaks occur in keys and are accepted.
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

// personText returns a value of the person for the input, marked as theirs.
func (in Input) personText(v string) mixedText {
	return mixedText{{text: v, fromPerson: true, secret: in.Secret}}
}

// flagHelp returns the flag that gives the input on the command line.
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

// Label returns the name of the input for a sentence, escaped.
func (in Input) Label() string {
	text := string(in.Kind) + " " + messages.Line(in.Name, 80)
	if in.Parent != "" {
		text += " of " + messages.Line(in.Parent, 80)
	}
	return text
}
