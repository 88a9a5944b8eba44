package scenario

import (
	"fmt"
	"maps"
	"strings"

	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// checkFault checks a fault as far as that is possible without its servers.
func (f *findings) checkFault(path string, x Fault) {
	kind, ok := faults.Lookup(x.Fault)
	if !ok {
		do := "mcpvisor chaos faults lists them"
		if near := faults.Nearest(x.Fault); near != "" {
			do = "did you mean " + quoteWord(near) + "?"
		}
		f.addProblem(path+".fault", do, "there is no fault %s", quoteWord(x.Fault))
		return
	}
	if len(TiersOf(kind)) == 0 {
		f.addProblem(path+".fault", "mcpvisor chaos faults lists those that a server has", "the fault %s is one of rules, between a client and a server", quoteWord(x.Fault))
		return
	}
	if wholeMachine(kind) && len(x.On) > 0 {
		f.addProblem(path+".on", "leave it out", "%s is about the whole machine", x.Fault)
	}
	for _, name := range sortedKeys(x.With) {
		if err := kind.CheckParams(faults.Sim, map[string]string{name: x.With[name]}); err != nil {
			f.addProblem(path+".with."+name, "", "%v", err)
		}
	}
}

// TiersOf returns the tiers in which a fault can be done; none for a fault of rules alone.
func TiersOf(k faults.Kind) (tiers []Tier) {
	if k.Where.Has(faults.Sim) {
		tiers = append(tiers, Sim)
	}
	if k.Where.Has(faults.Real) {
		tiers = append(tiers, Real)
	}
	return tiers
}

// wholeMachine reports whether a fault concerns no server: the machine sleeps as a whole, while a partition concerns
// some servers.
func wholeMachine(k faults.Kind) bool { return k.WholeMachine && k.Name == "sleep" }

// refusalError says why a fault cannot happen to a server, naming both; nil if it can.
func refusalError(k faults.Kind, s Server) error {
	if k.Applies(s.Kind, s.Era) {
		return nil
	}
	return fmt.Errorf("the fault %q cannot befall the server %q, which is %s and %s: it is for %s, %s", k.Name, s.Name, s.Kind,
		s.Era, strings.Join(toStrings(k.Servers), ", "), strings.Join(toStrings(k.Eras), ", "))
}

// withDefaults returns the parameters of one occurrence with defaults filled in; nil if there are none. Each occurrence
// has a map of its own, because capDownTime changes it.
func withDefaults(k faults.Kind, given map[string]string) map[string]string {
	with := maps.Clone(given)
	if with == nil {
		with = map[string]string{}
	}
	for _, p := range k.ParamsAt(faults.Sim) {
		if _, said := with[p.Name]; !said && p.Default != "" {
			with[p.Name] = p.Default
		}
	}
	if len(with) == 0 {
		return nil
	}
	return with
}
