package control

import (
	"context"
	"net/http"

	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// Rules are the rules about calls that are in force, in the form in which they travel. Managed are those of the
// machine's administrator, Own all others.
type Rules struct {
	Managed RuleSet `json:"managed"`
	Own     RuleSet `json:"own"`
	// Hints lets the annotations of trusted servers count although there is no default.
	Hints bool `json:"hints,omitempty"`
}

// RuleSet is access.Set in that form.
type RuleSet struct {
	Rules []Rule `json:"rules,omitempty"`
	// Default is the verdict for calls that no rule is about, empty for none; DefaultSource names the file that set
	// it.
	Default       access.Verdict `json:"default,omitempty"`
	DefaultSource access.Source  `json:"defaultSource"`
}

// Rule is access.Rule in that form: its text is parsed again on the other side.
type Rule struct {
	Verdict access.Verdict `json:"verdict"`
	Text    string         `json:"text"`
	Source  access.Source  `json:"source"`
	// Unreadable marks a rule that the other side could not read itself; it denies everything there, too.
	Unreadable bool `json:"unreadable,omitempty"`
}

// RulesOf returns the form in which rules travel.
func RulesOf(r access.Rules) Rules {
	set := func(s access.Set) RuleSet {
		out := RuleSet{Default: s.Default, DefaultSource: s.DefaultSource}
		for _, rule := range s.Rules {
			out.Rules = append(out.Rules, Rule{rule.Verdict, rule.Text, rule.Source, rule.Unreadable()})
		}
		return out
	}
	return Rules{set(r.Managed), set(r.Own), r.Hints}
}

// Access returns the rules that RulesOf was given. A rule that this program cannot read, because the other side is of
// a newer version, denies everything.
func (r Rules) Access() access.Rules {
	set := func(s RuleSet) access.Set {
		out := access.Set{Default: s.Default, DefaultSource: s.DefaultSource}
		for _, rule := range s.Rules {
			// The text is parsed again, and not copied, because a rule holds compiled patterns that do not travel.
			read, err := access.Parse(rule.Verdict, rule.Text)
			// A rule that is not understood must not be dropped: it could be a denial.
			if err != nil || rule.Unreadable {
				read = access.Unreadable(rule.Text, rule.Source)
			}
			read.Source = rule.Source
			out.Rules = append(out.Rules, read)
		}
		return out
	}
	return access.Rules{Managed: set(r.Managed), Own: set(r.Own), Hints: r.Hints}
}

// Permissions implements Backend.
func (l *localBackend) Permissions(context.Context) (Rules, error) {
	return RulesOf(l.m.Permissions()), nil
}

// Permissions implements Backend.
func (c *Client) Permissions(ctx context.Context) (Rules, error) {
	var out Rules
	err := c.requestJSON(ctx, http.MethodGet, pathPermissions, nil, nil, &out)
	return out, err
}
