package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"
)

// Sets are the requirement sets that are run: revisions of the specification.
var Sets = []string{"2025-11-25", "2026-07-28"}

// Run is one scenario at one protocol version.
type Run struct {
	Scenario string
	// Version is the revision of the specification that the suite plays.
	Version string
	// Unscored says why the run does not count for conformance; empty if the revision requires it.
	Unscored string
}

// String is VERSION/SCENARIO.
func (r Run) String() string { return r.Version + "/" + r.Scenario }

// olderRevision is why Extra is not scored.
const olderRevision = "older revision"

// Extra are the runs beyond the requirement sets: what the specification had before them, and servers still have.
var Extra = []Run{
	{"initialize", "2025-06-18", olderRevision},
	{"tools_call", "2025-06-18", olderRevision},
	{"auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26", olderRevision},
	{"auth/2025-03-26-oauth-endpoint-fallback", "2025-03-26", olderRevision},
}

// skillsReason is why the scenarios of SEP-2640 are not run.
const skillsReason = "skills (SEP-2640) are an extension for hosts that load a server's instructions into a model's context; " +
	"mcpvisor passes resources on and loads none"

// NotRun are the scenarios that are left out, with the reason.
var NotRun = map[string]string{
	"sep-2640-client-no-prefetch":        skillsReason,
	"sep-2640-client-verify-digest":      skillsReason,
	"sep-2640-client-verify-size":        skillsReason,
	"sep-2640-client-verify-frontmatter": skillsReason,
}

// requirements is a requirement set as the suite writes it.
type requirements struct {
	Server    []string `yaml:"server"`
	Client    []string `yaml:"client"`
	NotScored []struct {
		Scenario string `yaml:"scenario"`
		Leg      string `yaml:"leg"`
		Reason   string `yaml:"reason"`
	} `yaml:"not_scored"`
}

// Plan is every run: the sets as the files in folder have them, then Extra.
func Plan(folder string) ([]Run, error) {
	var plan []Run
	for _, version := range Sets {
		set, err := readRequirements(filepath.Join(folder, version+".yaml"))
		if err != nil {
			return nil, err
		}
		for _, scenario := range set.Client {
			plan = append(plan, Run{Scenario: scenario, Version: version})
		}
		for _, s := range set.NotScored {
			if s.Leg == "client" {
				plan = append(plan, Run{Scenario: s.Scenario, Version: version, Unscored: s.Reason})
			}
		}
	}
	return append(plan, Extra...), nil
}

// readRequirements reads a requirement set. One that requires nothing has another form than the one that is known.
func readRequirements(path string) (set requirements, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return set, err
	}
	if err := yaml.NewDecoder(bytes.NewReader(b)).Decode(&set); err != nil {
		return set, fmt.Errorf("%s: %w", path, err)
	}
	if len(set.Client) == 0 || len(set.Server) == 0 {
		return set, fmt.Errorf("%s requires nothing of a client, or of a server: its form has changed", path)
	}
	return set, nil
}

// Missing are the scenarios that are neither in the plan nor in NotRun, and those of NotRun that are not in the suite
// any more.
func Missing(plan []Run, scenarios []string) (unplanned, obsolete []string) {
	for _, s := range scenarios {
		_, out := NotRun[s]
		if !out && !slices.ContainsFunc(plan, func(r Run) bool { return r.Scenario == s }) {
			unplanned = append(unplanned, s)
		}
	}
	for s := range NotRun {
		if !slices.Contains(scenarios, s) {
			obsolete = append(obsolete, s)
		}
	}
	slices.Sort(obsolete)
	return unplanned, obsolete
}
