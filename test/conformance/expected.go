package conformance

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/goccy/go-yaml"
)

//go:embed expected-failures.yaml
var expectedFailures []byte

// ExpectedFailure is a scenario that is known to fail.
type ExpectedFailure struct {
	Scenario string `yaml:"scenario"`
	// Versions are those at which it fails; none means every version at which it is run.
	Versions []string `yaml:"versions"`
	// Why argues that this may be so. There is no entry without it.
	Why string `yaml:"why"`
	// PassesToo argues that the scenario may pass as well, where what decides is not the program's. Without it a pass makes the
	// entry stale.
	PassesToo string `yaml:"passesToo"`
}

func (e ExpectedFailure) coversRun(r Run) bool {
	return e.Scenario == r.Scenario && (len(e.Versions) == 0 || slices.Contains(e.Versions, r.Version))
}

// ReadExpected reads what is expected to fail from expected-failures.yaml.
func ReadExpected() ([]ExpectedFailure, error) { return parseExpected(expectedFailures) }

// parseExpected reads the entries. An entry without a reason is an error: a failure that is expected must be argued for.
func parseExpected(b []byte) ([]ExpectedFailure, error) {
	var list []ExpectedFailure
	err := yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField()).Decode(&list)
	if err != nil && !errors.Is(err, io.EOF) { // EOF: nothing but comments
		return nil, fmt.Errorf("expected-failures.yaml: %w", err)
	}
	for i, e := range list {
		switch {
		case e.Scenario == "":
			return nil, fmt.Errorf("expected-failures.yaml: entry %d names no scenario", i+1)
		case e.Why == "":
			return nil, fmt.Errorf("expected-failures.yaml: %s has no reason (why)", e.Scenario)
		}
	}
	return list, nil
}

// Judgement compares the outcomes of the runs with those that were expected.
type Judgement struct {
	// Unexpected are the runs that failed and may not; Stale the entries that cover a run which passed, and those that
	// cover none of the plan.
	Unexpected []Run
	Stale      []string
}

// OK says that everything is as expected.
func (j Judgement) OK() bool { return len(j.Unexpected) == 0 && len(j.Stale) == 0 }

// Judge compares outcomes with what was expected. plan is every run there is: the outcomes may be of some of them only.
func Judge(plan []Run, outcomes []Outcome, expected []ExpectedFailure) (j Judgement) {
	for _, o := range outcomes {
		switch outcomeState(o, expected) {
		case fails:
			j.Unexpected = append(j.Unexpected, o.Run)
		case stale:
			j.Stale = append(j.Stale, o.Run.String()+" passes")
		}
	}
	for _, e := range expected {
		if !slices.ContainsFunc(plan, e.coversRun) {
			j.Stale = append(j.Stale, e.Scenario+" is not run")
		}
	}
	return j
}

// findExpected finds the entry by which a run may fail. Its zero value, without a reason, means that the run may not.
func findExpected(expected []ExpectedFailure, r Run) ExpectedFailure {
	for _, e := range expected {
		if e.coversRun(r) {
			return e
		}
	}
	return ExpectedFailure{}
}
