package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// resolver gives each field of a document its value. It lives for one Build and remembers the values for the templates
// of URLs.
type resolver struct {
	source ValueSource
	// values holds the values of arguments and variables so far, by flag, hint and name. Under "variable NAME of
	// PARENT" it holds answers, so that a variable which occurs twice is asked for once.
	values map[string]mixedText
	// usedArgs holds the names in ValueSource.Args that had a place, for checkUnused.
	usedArgs map[string]bool
	// unset holds the optional inputs that have no value.
	unset []string
	notes []string
	// secrets holds the values that the person gave for secret inputs.
	secrets []string
}

// newResolver returns a resolver for one Build; without Ask the defaults answer.
func newResolver(f ValueSource) *resolver {
	if f.Ask == nil {
		f.Ask = Defaults
	}
	return &resolver{source: f, values: map[string]mixedText{}, usedArgs: map[string]bool{}}
}

// addNote adds a sentence for the person, once.
func (f *resolver) addNote(text string) {
	// Several inputs may cause the same note.
	if !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

// newInput returns the question to the person about a field. An empty default counts as none.
func newInput(kind Kind, name string, d Field) Input {
	in := Input{Kind: kind, Name: name, Description: d.Description, Placeholder: d.Placeholder, Secret: d.IsSecret,
		Format: d.Format, Choices: d.Choices}
	if d.Default != nil && *d.Default != "" {
		in.Default, in.HasDefault = string(*d.Default), true
	}
	return in
}

// resolveField returns the values of a field: several for repeated ones, none if it is optional and has none.
func (f *resolver) resolveField(in Input, d Field, variables map[string]Field) ([]mixedText, error) {
	var out []mixedText
	var err error
	// A fixed value cannot be replaced by the person; its variables can.
	if d.Value != nil && *d.Value != "" {
		out, err = f.fixedValues(in, string(*d.Value), d.IsRequired, variables)
	} else {
		out, err = f.chosenValues(in, d.IsRequired)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range out {
		if err := w.checkSafe("the " + in.Label()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fixedValues returns a value that the publisher wrote, with its variables substituted. A variable that was given
// several times makes several values of a repeated input.
func (f *resolver) fixedValues(in Input, template string, required bool, variables map[string]Field) ([]mixedText, error) {
	rounds := 1
	// The variable with the most given values decides the number of rounds; others repeat their last value.
	for name := range variables {
		if in.Repeated {
			rounds = max(rounds, len(f.source.Args[name]))
		}
	}
	var out []mixedText
	for i := range rounds {
		absent := ""
		w, err := substituteNames(template, func(name string) (mixedText, bool, error) {
			// Braces with another name are ordinary text.
			d, ok := variables[name]
			if !ok {
				return nil, false, nil
			}
			w, err := f.variableValue(in, name, d, required, i)
			if w == nil && err == nil {
				absent = name
			}
			return w, true, err
		})
		if err != nil {
			return nil, err
		}
		// A value with a gap would mean something else than no value.
		if absent != "" {
			f.unset = append(f.unset, in.Name)
			return nil, nil
		}
		out = append(out, w)
	}
	return out, nil
}

// variableValue returns the value of one variable in round i; nil if the variable and the field around it are optional
// and there is no value.
func (f *resolver) variableValue(parent Input, name string, d Field, required bool, i int) (mixedText, error) {
	if d.Value != nil && *d.Value != "" {
		return publishedText(string(*d.Value)), nil
	}
	in := newInput(Variable, name, d)
	// A part of a secret is a secret.
	in.Parent, in.Secret = parent.Name, in.Secret || parent.Secret
	if all := f.source.Args[name]; len(all) > 0 {
		f.usedArgs[name] = true
		v := all[min(i, len(all)-1)]
		f.keepSecret(in, v)
		return in.personText(v), f.checkValue(in, v)
	}
	// The person answers once for all rounds.
	key := "variable " + name + " of " + parent.Name
	if w, ok := f.values[key]; ok {
		return w, nil
	}
	// A required value needs all of its variables.
	chosen, err := f.chosenValues(in, d.IsRequired || required)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	f.values[key] = chosen[0]
	return chosen[0], nil
}

// chosenValues returns the value of an input that the person may choose: the given one, else the answer to Ask if it is
// required, else the default.
func (f *resolver) chosenValues(in Input, required bool) ([]mixedText, error) {
	if all := f.givenValues(in); len(all) > 0 {
		// Taking one of them would ignore what the person wrote.
		if len(all) > 1 && !in.Repeated {
			return nil, planError(ErrValue, "the "+in.Label()+" takes one value, and several are given", "")
		}
		return f.personValues(in, all)
	}
	// A question about every optional input would tire the person; checkUnused notes those that were left out.
	if !required {
		if in.HasDefault {
			return []mixedText{publishedText(in.Default)}, nil
		}
		f.unset = append(f.unset, in.Name)
		return nil, nil
	}
	answers, err := f.source.Ask(in)
	if err != nil {
		return nil, err
	}
	// An empty answer counts as none.
	answers = slices.DeleteFunc(slices.Clone(answers), func(s string) bool { return s == "" })
	switch {
	case len(answers) == 0:
		return nil, planError(ErrMissing, "the "+in.Label()+" is required", "give it with "+in.flagHelp())
	case len(answers) == 1 && in.HasDefault && answers[0] == in.Default:
		// A confirmed default is still the publisher's text, and must not refer to the environment.
		return []mixedText{publishedText(in.Default)}, nil
	}
	return f.personValues(in, answers)
}

// personValues checks values of the person and marks them as theirs.
func (f *resolver) personValues(in Input, all []string) ([]mixedText, error) {
	out := make([]mixedText, len(all))
	for i, v := range all {
		// Values that were given beforehand are checked like answers.
		if err := f.checkValue(in, v); err != nil {
			return nil, err
		}
		out[i] = in.personText(v)
		f.keepSecret(in, v)
	}
	return out, nil
}

// keepSecret remembers a value that must not be shown.
func (f *resolver) keepSecret(in Input, v string) {
	if in.Secret {
		f.secrets = append(f.secrets, v)
	}
}

// checkValue returns an error that names the input and does not quote the value.
func (f *resolver) checkValue(in Input, v string) error {
	if err := in.Check(v); err != nil {
		return planError(ErrValue, "the "+in.Label()+" does not fit: "+err.Error(), "")
	}
	return nil
}

// givenValues returns the values that the person gave beforehand for an input, and marks arguments as used; nil if
// there are none. Flags match with and without their dashes.
func (f *resolver) givenValues(in Input) []string {
	// Each kind has a flag of its own, so that equal names do not collide.
	switch in.Kind {
	case Environment:
		if v, ok := f.source.Env[in.Name]; ok {
			return []string{v}
		}
	case Header:
		// The order decides if the person gave two spellings of one header.
		for _, name := range slices.Sorted(maps.Keys(f.source.Headers)) {
			if strings.EqualFold(name, in.Name) {
				return []string{f.source.Headers[name]}
			}
		}
	default:
		for _, name := range []string{in.Name, strings.TrimLeft(in.Name, "-")} {
			if v, ok := f.source.Args[name]; ok && name != "" {
				f.usedArgs[name] = true
				return v
			}
		}
	}
	return nil
}

// checkUnused returns an error for a given argument without a place, which is probably misspelt, and notes the optional
// inputs that were left out.
func (f *resolver) checkUnused() error {
	for _, name := range slices.Sorted(maps.Keys(f.source.Args)) {
		if !f.usedArgs[name] {
			return planError(ErrValue, "nothing takes the argument "+messages.Line(name, 80),
				"a value that the publisher has fixed cannot be given")
		}
	}
	if len(f.unset) > 0 {
		slices.Sort(f.unset)
		f.addNote("optional, and left out: " + messages.Line(strings.Join(slices.Compact(f.unset), ", "), 400))
	}
	return nil
}
