package auth

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// commandLimit bounds a command if nothing else is configured.
const commandLimit = 10 * time.Second

// terminalFix is for a command that asks for something, such as gpg and pass: it cannot where there is no terminal, as in the daemon of
// mcpvisor connect. gpg-agent keeps a passphrase that was typed elsewhere. The words of the command may hold secrets, so that they are not
// repeated.
const terminalFix = "run it once in a terminal, where it can ask for a passphrase"

// ShellCommand returns the configuration that runs a command line in the system's shell: /bin/sh -c, on Windows cmd /C.
func ShellCommand(line string) stdio.Config {
	if runtime.GOOS == "windows" {
		return stdio.Config{Command: "cmd", Args: []string{"/C", line}}
	}
	return stdio.Config{Command: "/bin/sh", Args: []string{"-c", line}}
}

// runCommand runs a command that prints credentials. No error repeats its output, because the beginning of a token is secret too.
// Errors that may pass have ClassNetwork, so that the server is tried again; the others ask for a person.
func runCommand(ctx context.Context, program stdio.Config, limit time.Duration, what string) ([]byte, error) {
	if limit <= 0 {
		limit = commandLimit
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := stdio.Output(bounded, program, maxValue)
	if err == nil {
		return out, nil
	}
	var e *transports.Error
	if !errors.As(err, &e) {
		return nil, noCredentialsError(what+" failed", "", nil)
	}
	fail := *e
	switch {
	// The caller has given up, which says nothing about the command.
	case ctx.Err() != nil:
		return nil, &fail
	case e.Class == messages.ClassTimeout:
		// Most helpers ask a service over the network, which may answer the next time.
		fail.Class = messages.ClassNetwork
		fail.Text = what + " printed no credentials within " + limit.String() + " and was ended"
		fail.Fix = terminalFix
	// This machine is short of something, which passes.
	case e.Class == messages.ClassExhausted:
		fail.Class = messages.ClassNetwork
	// It printed too much, or ended with an error: trying again would do the same.
	case e.Class == messages.ClassExited, e.Class == messages.ClassProtocol:
		fail.Class, fail.Text = messages.ClassUnauthorized, what+" gave no credentials: "+e.Text
		fail.Fix = terminalFix
	default:
		fail.Class = messages.ClassUnauthorized
	}
	return nil, &fail
}
