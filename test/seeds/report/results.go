package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/arch"
)

// readOutcomes reads the outcomes of top-level tests: "pass", "fail" or "skip" by folder.TestName.
func readOutcomes(name string) (map[string]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return outcomesIn(f, io.Discard)
}

// runTests runs the tests and shows what the failing ones print.
func runTests(root string, tests []string) (map[string]string, error) {
	if len(tests) == 0 {
		return nil, nil
	}
	var folders, names []string
	for _, t := range tests {
		folder, name, _ := strings.Cut(t, ".Test")
		folders = append(folders, "./"+folder)
		names = append(names, "Test"+name)
	}
	args := append([]string{"test", "-json", "-timeout", "15m", "-run", "^(" + strings.Join(sortedUnique(names), "|") + ")$"},
		sortedUnique(folders)...)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	outcomes, err := outcomesIn(out, os.Stderr)
	if err != nil {
		return nil, err
	}
	_ = cmd.Wait() // a failing test is in the outcomes; one that could not be built has none, which is as bad
	return outcomes, nil
}

func sortedUnique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// outcomesIn reads go test -json and copies what failing tests printed to w.
func outcomesIn(r io.Reader, w io.Writer) (map[string]string, error) {
	outcomes := map[string]string{}
	printed := map[string][]string{}
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e struct{ Action, Package, Test, Output string }
			if json.Unmarshal(line, &e) != nil { // go prints build errors as plain text
				fmt.Fprint(w, string(line))
				continue
			}
			folder := strings.TrimPrefix(strings.TrimPrefix(e.Package, arch.Module), "/")
			top, _, isSub := strings.Cut(e.Test, "/")
			test := folder + "." + top
			switch e.Action {
			case "build-output":
				fmt.Fprint(w, e.Output)
			case "output":
				printed[test] = append(printed[test], e.Output)
			case "pass", "fail", "skip":
				if e.Test != "" && !isSub {
					outcomes[test] = e.Action
					if e.Action == "fail" {
						fmt.Fprint(w, strings.Join(printed[test], ""))
					}
					delete(printed, test)
				}
			}
		}
		if err == io.EOF {
			return outcomes, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
