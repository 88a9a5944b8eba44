package scenario

import (
	"fmt"
	"maps"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/faults"
)

// fault checks what can be said of a fault without its servers.
func (f *findings) fault(path string, x Fault) {
	kind, ok := faults.Named(x.Fault)
	if !ok {
		do := "mcpvisor chaos faults lists them"
		if near := faults.Nearest(x.Fault); near != "" {
			do = "did you mean " + quote(near) + "?"
		}
		f.add(path+".fault", do, "there is no fault %s", quote(x.Fault))
		return
	}
	if wholeMachine(kind) && len(x.On) > 0 {
		f.add(path+".on", "leave it out", "%s is about the whole machine", x.Fault)
	}
	for _, name := range sortedKeys(x.With) {
		if err := kind.CheckParams(map[string]string{name: x.With[name]}); err != nil {
			f.add(path+".with."+name, "", "%v", err)
		}
	}
}

// wholeMachine says which faults have no server: the machine sleeps as a whole, while a partition is of some servers.
func wholeMachine(k faults.Kind) bool { return k.Machine && k.Name == "sleep" }

// refusal says why a fault cannot happen to a server, naming both; nil if it can.
func refusal(k faults.Kind, s Server) error {
	if k.Applies(s.Kind, s.Era) {
		return nil
	}
	return fmt.Errorf("the fault %q cannot befall the server %q, which is %s and %s: it is for %s, %s", k.Name, s.Name, s.Kind,
		s.Era, strings.Join(words(k.Kinds), ", "), strings.Join(words(k.Eras), ", "))
}

// parameters are those of one occurrence, defaults filled in. Each occurrence has a map of its own.
func parameters(k faults.Kind, given map[string]string) map[string]string {
	with := maps.Clone(given)
	if with == nil {
		with = map[string]string{}
	}
	for _, p := range k.Params {
		if _, said := with[p.Name]; !said && p.Default != "" {
			with[p.Name] = p.Default
		}
	}
	if len(with) == 0 {
		return nil
	}
	return with
}
