package remote

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxValue bounds the value of a parameter, in bytes.
const maxValue = 4096

// Template is a server of this machine that peers with the right to it may add: a whole spec, in which a peer fills
// in the parameters and nothing else.
type Template struct {
	// Spec is the server. A parameter is written "{name}" inside an argument, inside the value of a header, or in the
	// path or the query of the URL, and nowhere else: not in the command, its directory, its environment or its
	// isolation.
	Spec messages.Spec
	// Parameters are the patterns (RE2) that whole values must match, by name: lower-case letters, digits and '_'. A
	// peer gives each of them, and no others. With any pattern, a value has at most 4,096 bytes and no control
	// characters, does not begin an argument with '-', and is escaped in a URL.
	Parameters map[string]string
}

// placeholder matches a parameter in a text.
var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[a-z][a-z0-9_]*\}`) })

// A compiledTemplate is a checked Template with compiled patterns. It is never changed.
type compiledTemplate struct {
	spec     messages.Spec
	patterns map[string]*regexp.Regexp
}

// compile checks a template: each parameter has a valid name and pattern, is used, and is used only where it cannot
// decide what runs or which host is reached.
func (t Template) compile(name string) (*compiledTemplate, error) {
	at := func(text, fix string) error { return invalidError(fmt.Sprintf("the template %q: %s", name, text), fix) }
	c := &compiledTemplate{spec: t.Spec, patterns: map[string]*regexp.Regexp{}}
	for p, pattern := range t.Parameters {
		_, err := regexp.Compile(pattern) // alone, because a pattern such as ")|(" would be valid only inside of the group
		re, wholeErr := regexp.Compile(`\A(?:` + pattern + `)\z`)
		if err != nil || wholeErr != nil || !placeholder().MatchString("{"+p+"}") {
			return nil, at(fmt.Sprintf("the parameter %q has no usable name and pattern", p), "name it in lower case, and give a pattern in RE2")
		}
		c.patterns[p] = re
	}
	host, tail := splitURL(t.Spec.URL)
	used := map[string]bool{}
	// Only the places in which parameters are allowed are searched here.
	for _, text := range slices.Concat(t.Spec.Args, slices.Collect(maps.Values(t.Spec.Headers)), []string{tail}) {
		for _, p := range placeholder().FindAllString(text, -1) {
			p = p[1 : len(p)-1]
			if c.patterns[p] == nil {
				return nil, at(fmt.Sprintf("{%s} is not declared", p), "add its pattern to Parameters")
			}
			used[p] = true
		}
	}
	// A parameter that is not used is a mistake of the owner: peers would give values without an effect.
	for p := range c.patterns {
		if !used[p] {
			return nil, at(fmt.Sprintf("the parameter %q stands nowhere", p), "write {"+p+"} in an argument, a header's value, or behind the URL's host")
		}
		for _, text := range slices.Concat([]string{t.Spec.Command, t.Spec.Cwd, host}, slices.Collect(maps.Values(t.Spec.Env))) {
			if strings.Contains(text, "{"+p+"}") {
				return nil, at(fmt.Sprintf("the parameter %q stands where it decides what runs or who is reached", p),
					"write {"+p+"} in an argument, a header's value, or behind the URL's host only")
			}
		}
	}
	return c, nil
}

// splitURL splits a URL behind its host. A URL without "://" is all host.
func splitURL(u string) (host, tail string) {
	at := strings.Index(u, "://")
	if at < 0 {
		return u, ""
	}
	if end := strings.IndexAny(u[at+3:], "/?#"); end >= 0 {
		return u[:at+3+end], u[at+3+end:]
	}
	return u, ""
}

// fillSpec returns the spec with the values in their places, or the reason for which a value is refused. The scope is
// ScopeRuntime, so the server counts as one that was added at run time.
func (c *compiledTemplate) fillSpec(values map[string]string) (messages.Spec, error) {
	// An unknown parameter is refused: its sender would believe that it has an effect.
	for p := range values {
		if c.patterns[p] == nil {
			return messages.Spec{}, fmt.Errorf("it has no parameter %q", messages.Line(p, 80))
		}
	}
	for p, re := range c.patterns {
		switch v, found := values[p]; { // a missing value is no empty one
		case !found:
			return messages.Spec{}, fmt.Errorf("the parameter %q is missing", p)
		case len(v) > maxValue || !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) || !re.MatchString(v):
			return messages.Spec{}, fmt.Errorf("the value of %q is not of its form", p)
		}
	}
	// The slices and maps of the template are cloned before a value is filled in: peers share them.
	s := c.spec
	s.Scope = messages.ScopeRuntime
	s.Args = slices.Clone(s.Args)
	for i, arg := range s.Args {
		s.Args[i] = c.replaceParams(arg, values, func(v string) string { return v })
		// The pattern may allow '-', but then the value would be an option of the command.
		if strings.HasPrefix(s.Args[i], "-") && !strings.HasPrefix(arg, "-") {
			return messages.Spec{}, errors.New("a value may not begin an argument with '-'")
		}
	}
	s.Headers = maps.Clone(s.Headers)
	for key, value := range s.Headers {
		s.Headers[key] = c.replaceParams(value, values, func(v string) string { return v })
	}
	// Each part of the URL is escaped by its own rules, so that a value cannot begin another part.
	host, tail := splitURL(s.URL)
	path, query, hasQuery := strings.Cut(tail, "?")
	path = c.replaceParams(path, values, url.PathEscape)
	if hasDotSegment(path) {
		return messages.Spec{}, errors.New("a value may not make a segment of dots")
	}
	s.URL = host + path
	if hasQuery {
		s.URL += "?" + c.replaceParams(query, values, url.QueryEscape)
	}
	return s, nil
}

// replaceParams fills one text in a single pass: a value that looks like a parameter is not replaced again.
func (c *compiledTemplate) replaceParams(text string, values map[string]string, escape func(string) string) string {
	return placeholder().ReplaceAllStringFunc(text, func(p string) string { return escape(values[p[1:len(p)-1]]) })
}

// instantiateSpec returns the spec that a peer asked for by template. Any other field in its request is refused,
// because this machine's owner decides what runs, where, and with which variables.
func (c Config) instantiateSpec(r Rights, server string, p *messages.ServerSpec) (*messages.ServerSpec, error) {
	onlyTemplate := true
	// Range visits the fields that are set. Naming the two allowed ones also refuses every field of later versions.
	p.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		onlyTemplate = f.Name() == "template" || f.Name() == "parameters"
		return onlyTemplate
	})
	name := p.GetTemplate()
	switch {
	case !onlyTemplate || name == "":
		return nil, deniedError("connect", server, "a peer adds a server by the name of a template, and gives its parameters and nothing else",
			"add a template to Config.Templates of the machine that runs the manager, and send its name in spec.template")
	case c.compiledTemplates[name] == nil || !r.allowsTemplate(name):
		return nil, deniedError("connect", server, fmt.Sprintf("the template %q is not there, or not for this peer", messages.Line(name, 200)),
			"name it in Config.Templates and in the peer's Rights.Templates on the machine that runs the manager")
	}
	spec, err := c.compiledTemplates[name].fillSpec(p.GetParameters())
	if err != nil {
		return nil, deniedError("connect", server, fmt.Sprintf("the template %q: %v", name, err), "give each parameter a value that matches its pattern")
	}
	return spec.ToProto(), nil
}
