package generate_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// Every seed must give one scenario, the same each time, and one that the simulation can plan.
func TestEverySeedCanBePlanned(t *testing.T) {
	for seed := range uint64(500) {
		s := generate.Scenario(seed, generate.Options{})
		if !reflect.DeepEqual(s, generate.Scenario(seed, generate.Options{})) {
			t.Fatalf("seed %d: two scenarios", seed)
		}
		if _, err := s.Plan(0, scenario.Sim); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestWhatSeedsAreMadeOf counts over 500 seeds: each fault of the simulation and each occasion is in some per cent of them, and
// so are the commands, the kinds of servers, both eras, trusted and untrusted ones. A fault that no seed draws would never be
// tried.
func TestWhatSeedsAreMadeOf(t *testing.T) {
	const seeds = 500
	count := map[string]int{}
	for seed := range uint64(seeds) {
		s := generate.Scenario(seed, generate.Options{})
		has := map[string]bool{}
		p, err := s.Plan(0, scenario.Sim)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, f := range p.Faults {
			has["fault "+f.Fault] = true
		}
		for _, c := range p.Commands {
			has["command "+c.Do] = true
		}
		for _, server := range p.Servers {
			has["kind "+string(server.Kind)], has["era "+string(server.Era)] = true, true
			has["connect "+string(server.Connect)] = true
			has[fmt.Sprint("trusted ", server.Trusted)] = true
		}
		for _, l := range p.Load {
			has["tool "+l.Tool] = true
		}
		for _, w := range s.Sometimes {
			has["occasion "+w] = true
		}
		if len(p.Servers) > 12+18 || p.Heal < 2*time.Minute || p.Heal > 20*time.Minute {
			t.Errorf("seed %d: %d servers, %v", seed, len(p.Servers), p.Heal)
		}
		for w := range has {
			count[w]++
		}
	}
	// The least share of seeds, in per cent. A seed holds the same number of faults however many kinds there are.
	want := map[string]int{}
	simulated := slices.DeleteFunc(faults.Kinds(), func(k faults.Kind) bool { return !k.Where.Has(faults.Sim) })
	for _, k := range faults.Kinds() {
		if k.Where.Has(faults.Sim) {
			want["fault "+k.Name] = 200 / len(simulated)
		} else if count["fault "+k.Name] > 0 {
			t.Errorf("%s is not for the simulation", k.Name)
		}
	}
	for w := range scenario.Occasions {
		want["occasion "+w] = 5
	}
	for w := range scenario.Commands {
		want["command "+w] = 8
	}
	for _, k := range scenario.Kinds {
		want["kind "+string(k)] = 15
	}
	for _, w := range []string{"era legacy", "era modern", "connect eager", "trusted true", "trusted false", "tool read",
		"tool put", "tool write"} {
		want[w] = 25
	}
	want["connect lazy"] = 8
	for w, percent := range want {
		if count[w]*100 < percent*seeds {
			t.Errorf("%s is in %d of %d seeds, and should be in %d %%", w, count[w], seeds, percent)
		}
	}
}

// The options are upper bounds, also where a draw or a recipe would need one server more.
func TestOptionsBoundWhatIsMade(t *testing.T) {
	for seed := range uint64(200) {
		s := generate.Scenario(seed, generate.Options{Servers: 2, Faults: 3, Duration: time.Minute, Only: []string{"crash", "stop"}})
		p, err := s.Plan(0, scenario.Sim)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(p.Servers) > 2 || len(s.Faults) > 3 || p.Heal != time.Minute || len(s.Sometimes) > 0 {
			t.Errorf("seed %d: %d servers, %d faults, %v, %v", seed, len(p.Servers), len(s.Faults), p.Heal, s.Sometimes)
		}
		for _, f := range s.Faults {
			if f.Fault != "crash" && f.Fault != "stop" {
				t.Errorf("seed %d: %s", seed, f.Fault)
			}
		}
	}
}

// A server that is healthy must be able to connect within its timeout, or the check of the time after the faults would ask for
// what the server cannot do. Each time that it takes is up to one and a half times the drawn one.
func TestAHealthyServerConnectsInTime(t *testing.T) {
	for seed := range uint64(1000) {
		p, err := generate.Scenario(seed, generate.Options{}).Plan(0, scenario.Sim)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, server := range p.Servers {
			// The start, the handshake, and each page of the list.
			longest := (server.Start + server.Latency + time.Duration(max(server.Pages, 1))*server.Latency) * 3 / 2
			if longest >= server.ConnectTimeout {
				t.Errorf("seed %d: %s may need %v, and its connectTimeout is %v", seed, server.Name, longest, server.ConnectTimeout)
			}
		}
	}
}

// A generated day can be written to a file and read again, so that a found failure can be kept as a scenario.
func TestADayCanBeWritten(t *testing.T) {
	for seed := range uint64(100) {
		s := generate.Scenario(seed, generate.Options{})
		same, err := scenario.Vet("day.yaml", s.YAML())
		if err != nil || !reflect.DeepEqual(s, same) {
			t.Errorf("seed %d: %v\n%s", seed, err, s.YAML())
		}
	}
}

func ExampleScenario() {
	s := generate.Scenario(3, generate.Options{})
	fmt.Println(s.Name, s.Seed)
	plan, err := s.Plan(0, scenario.Sim)
	fmt.Println(len(plan.Faults) > 0, err)
	// Output:
	// seed-3 3
	// true <nil>
}
