package peers

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// oldestNodeOfSuite is the major version of Node that the conformance suite's package.json asks for.
const oldestNodeOfSuite = 22

// Suite is the installed conformance suite.
type Suite struct {
	// Node runs it: a Node that npm installed beside it, because it needs a newer one than the servers do.
	Node string
	// Script is its command.
	Script string
	// Requirements is the folder of the lists of what each revision of the specification requires: REVISION.yaml.
	Requirements string
}

// Conformance gives the official conformance suite at the version of test/conformance/npm, and installs it first if
// need be, 240 MB in all. It is not among what Install installs: only package test/conformance needs it.
func Conformance(log io.Writer) (*Suite, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s is not installed", tool)
		}
	}
	dir, err := installPackages(log, true, "conformance", "../conformance/npm")
	if err != nil {
		return nil, err
	}
	s := &Suite{
		Script:       filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		Requirements: filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "requirements"),
	}
	s.Node, err = nodeOfSuite(filepath.Join(dir, "node_modules"))
	return s, err
}

// nodeOfSuite is the Node of npm's packages for this machine, which package.json names as optional, or the machine's
// own if it is new enough.
func nodeOfSuite(modules string) (string, error) {
	system := map[string]string{"windows": "win"}[runtime.GOOS]
	if system == "" {
		system = runtime.GOOS
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	name := "node"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	installed := filepath.Join(modules, "node-"+system+"-"+arch, "bin", name)
	if _, err := os.Stat(installed); err == nil {
		return installed, nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return "", err
	}
	return node, nodeIsNewEnough(node, oldestNodeOfSuite)
}
