package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// Promised are the packages whose exported names are the library: who embeds mcpvisor imports them, and a change of them
// stands in the page of changes. Every other public package is public only because Go lets the command, the harness or a
// package beside it reach it no other way; its package comment says so with NoPromise.
var Promised = map[string]string{
	"messages":                  "the vocabulary: specs, statuses, events, errors, and what actors are sent",
	"supervisor":                "the facade",
	"supervisor/access":         "permission rules, which Config.Rules takes",
	"supervisor/audit":          "the audit log, which Config.Audit takes",
	"supervisor/pins":           "the store of definitions, which Config.Pins takes",
	"supervisor/restart":        "the policy and the limits of starts, which Config takes",
	"supervisor/remote":         "the manager from another process",
	"supervisor/supervisortest": "a manager on scripted servers in a test of one's own",
	"actors/catalog":            "the snapshot that Manager.Snapshot returns",
	"transports":                "what a transport of one's own fulfils",
	"transports/stdio":          "the transport to a child process, and what a program with children needs",
	"transports/web":            "the transports over HTTP",
	"transports/websocket":      "the transport over a WebSocket",
	"transports/stream":         "the transport over any stream of lines, which the program opens",
	"transports/inprocess":      "the transport to a server in the same program",
	"transports/httpclient":     "the HTTP clients of transports over a network, with certificates of one's own",
	"transports/auth":           "credentials for one's own transport",
	"transports/auth/oauth":     "the sign-in for one's own transport",
	"transports/fault":          "faults in a test of one's own",
	"transports/gosdk":          "a server of the Go SDK in the same program",
	"transports/mcpgo":          "a server of mcp-go in the same program",
	"transports/transporttest":  "the contract that a transport of one's own is held to",
}

// NoPromise stands in a package comment that says that its names may change without notice.
const NoPromise = "what it exports may change without notice"

// MaxPromised bounds how many names the library promises: constants, variables, types and functions, without methods and fields. One of
// them, messages.SetRequestID, is for actors that pass commands on, as package remote does; eleven are the
// caller of a request, the refusal of its credentials, and instances of servers.
// Nineteen are the words in which package fault writes a rule. Forty-four are the words of package messages under the import of supervisor,
// so that a program that embeds the manager needs no other.
const MaxPromised = 682

// Surface says what is wrong with the public packages: one that is neither promised nor says that it is not, or both.
// comments are the package comments by folder, exported the numbers of their exported names.
func Surface(promised map[string]string, comments map[string]string, exported map[string]int, most int) (bad []string, total int) {
	// Line breaks of the comment do not count: the sentence may be wrapped anywhere.
	for folder, comment := range comments {
		says := strings.Contains(strings.Join(strings.Fields(comment), " "), NoPromise)
		_, listed := promised[folder]
		switch {
		case listed && says:
			bad = append(bad, fmt.Sprintf("%s is promised, and says that %s", folder, NoPromise))
		case !listed && !says:
			bad = append(bad, fmt.Sprintf("%s is public and not promised: move it below internal/, add it to Promised, or end its package comment with for whom it is public and that %s",
				folder, NoPromise))
		}
		if listed {
			total += exported[folder]
		}
	}
	for folder := range promised {
		if _, ok := comments[folder]; !ok {
			bad = append(bad, folder+" is promised and does not exist")
		}
	}
	if total > most {
		bad = append(bad, fmt.Sprintf("the library promises %d names, more than %d: who is to learn them?", total, most))
	}
	return bad, total
}

// CountExported counts the exported constants, variables, types and functions of a file.
func CountExported(f *ast.File) (n int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		// Methods are learned with their type, and are not counted.
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						n++
					}
				case *ast.ValueSpec:
					for _, id := range s.Names {
						if id.IsExported() {
							n++
						}
					}
				}
			}
		}
	}
	return n
}
