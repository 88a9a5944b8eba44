// Package cli holds what all commands share: the [Options] of a run, remarks and failures on standard error, the report that a
// failing command prints with --json, and the help.
//
// How it fits: the command's run makes the Options and passes them to every command. cobra writes the persistent flags into
// them ([Options.AddFlags]), and [Options.ReadCommandLine] makes the flags count before a command begins. At the end
// [Options.ReportResult] prints the error of the command and returns the exit code. The package knows no server and opens no
// project.
//
// Guarantees: standard output has results alone, remarks and failures go to standard error; with --json a failure is an object as
// well. The Options are written before a command begins and read afterwards, but for the prompter, which has a
// lock of its own.
//
// Not promised: that a remark is printed. --quiet leaves remarks out, and never an error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// Options holds what every command shares in one run: the streams and the values of the persistent flags. run makes one per
// process; cobra writes the flags into it before a command runs, and from then on only the command's goroutine changes it.
type Options struct {
	terminal.Streams
	// dir is the value of --dir, empty if not given; ApplyFlags changes the working directory to it.
	dir string
	// Configs and servers are the values of --config and --mcp-server. They count as dynamic scope and need no approval.
	Configs []string
	Servers []string
	// Only leaves out every file but those of --config, --mcp-server and the organisation.
	Only bool
	// Quiet suppresses progress, hints and notices (see PrintRemark); errors are printed all the same.
	Quiet bool
	// JSON says that the command prints for programs; failures then collects what failed without ending the command, and
	// ReportError prints it as part of one object.
	JSON     bool
	failures *failures
	// misread is true until cobra has parsed the command line. While it is true the value of json cannot be trusted, and run
	// looks for --json itself.
	misread bool
	// Approve starts unapproved servers of the project for this run and remembers nothing; InheritEnv passes the whole
	// environment of this process to servers.
	Approve    bool
	InheritEnv bool
	// logLevel is the value of --log-level; empty means logDefault.
	logLevel string
	// NoControl neither connects to nor opens the control socket of the project.
	NoControl bool
	// WaitFlag is the value of --wait of the running command, 0 if the person did not give it or the command has no such flag.
	WaitFlag time.Duration
	Audit    auditFlags
	AskFlags ask.Flags
	// Prompter asks the person, on behalf of servers and of commands. A shell completion has an empty one, see WithoutOutput.
	Prompter *ask.Prompter
	// Ctx is the context of the command, under which the configuration is read. If it is nil, an interrupt does not end the
	// reading.
	Ctx context.Context
	// Store says where sign-ins are kept: one of storeKinds, or empty for the default, auto.
	Store string
	// logDefault is the log level of the command when --log-level is not given.
	logDefault zapcore.Level
}

// NewOptions returns the options of a run whose command line has not been read.
func NewOptions(ctx context.Context, s terminal.Streams, d *ask.Prompter) *Options {
	return &Options{Streams: s, Prompter: d, Ctx: ctx, logDefault: zapcore.ErrorLevel, failures: &failures{}, misread: true}
}

// AddFlags adds the persistent flags of the program.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.dir, "dir", "C", "", "run as if started in this `directory`")
	f.StringArrayVarP(&o.Configs, "config", "c", nil,
		"read this `file` as well, which needs no approval then (repeatable; - is standard input)")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print results and errors alone: no progress, no hints, no notices")
	f.StringArrayVar(&o.Servers, "mcp-server", nil,
		"add a `server`: NAME=URL, NAME=\"COMMAND ARGS…\" or NAME={json} (repeatable)")
	f.BoolVar(&o.Only, "only", false, "of all files count those of --config and --mcp-server alone, and the organisation's")
	f.BoolVar(&o.Approve, "approve", false, "for this run, start servers found in the project that nobody approved yet")
	f.BoolVar(&o.InheritEnv, "inherit-env", false, "give servers the whole environment, not the short list of variables")
	f.StringVar(&o.logLevel, "log-level", "", "log to standard error from this `level` on: debug, info, warn or error")
	f.BoolVar(&o.NoControl, "no-control", false, "do not use (or, with up, open) the control socket of this project")
	o.Audit.addTo(f)
	o.AskFlags.AddTo(f)
	f.StringVar(&o.Store, "store", "", "keep sign-ins in auto, keyring, files (encrypted) or plain (files in the clear); "+
		"the same for every command, and $MCPVISOR_STORE if not given")
}

// ReadCommandLine takes from a command line that cobra has parsed what concerns every command, and applies it. It runs before
// any command's own code.
func (o *Options) ReadCommandLine(cmd *cobra.Command) error {
	o.misread = false
	if f := cmd.Flags().Lookup("json"); f != nil {
		o.JSON = f.Value.String() == "true"
	}
	if cmd.Flags().Changed("wait") {
		o.WaitFlag, _ = cmd.Flags().GetDuration("wait") // the flag is a duration in every command that has it
	}
	return o.ApplyFlags()
}

// ApplyFlags validates the persistent flags and makes them count before any command runs: it changes the working directory and
// reads the files that the answers to questions come from. Each error is an exit.Error with exit.Usage.
func (o *Options) ApplyFlags() error {
	if err := checkHomeDirs(o.Err); err != nil {
		return err
	}
	if o.logLevel != "" {
		if _, err := zapcore.ParseLevel(o.logLevel); err != nil {
			return exit.With(exit.Usage, fmt.Sprintf("--log-level: %q is no level; use debug, info, warn or error",
				messages.Line(o.logLevel, 40)))
		}
	}
	if o.Only && len(o.Configs)+len(o.Servers) == 0 {
		return exit.With(exit.Usage, "--only: it needs --config FILE or --mcp-server NAME=… that counts")
	}
	if o.Store == "" {
		o.Store = os.Getenv("MCPVISOR_STORE")
	}
	if o.Store != "" && !slices.Contains(storeKinds, o.Store) {
		return exit.With(exit.Usage, fmt.Sprintf("--store: %q is no place for sign-ins; use %s",
			messages.Line(o.Store, 40), strings.Join(storeKinds, ", ")))
	}
	// --dir comes after the checks that do not touch the disk and before AskFlags, whose file names are relative to it.
	if o.dir != "" {
		if err := os.Chdir(o.dir); err != nil {
			text := err.Error()
			if errors.Is(err, os.ErrNotExist) {
				text = "there is no such directory"
			}
			return exit.With(exit.Usage, fmt.Sprintf("--dir: %q: %s", messages.Line(o.dir, 200), text))
		}
	}
	return o.AskFlags.ReadValues(o.Prompter)
}

// StoreGiven reports whether the person chose another place for sign-ins than the environment does.
func (o *Options) StoreGiven() bool { return o.Store != os.Getenv("MCPVISOR_STORE") }

// ApartFlag returns a flag because of which the servers are not those that the daemon keeps, which reads the configuration as every agent
// finds it; empty if none is given.
func (o *Options) ApartFlag() string {
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--config", len(o.Configs) > 0}, {"--mcp-server", len(o.Servers) > 0}, {"--no-control", o.NoControl}, {"--approve", o.Approve},
		{"--inherit-env", o.InheritEnv}, {"--audit", o.Audit.File != ""}, {"--no-audit", o.Audit.Off}, {"--store", o.StoreGiven()},
	} {
		if flag.given {
			return flag.name
		}
	}
	return o.AskFlags.ManagerFlag()
}

// storeKinds lists the words of --store.
var storeKinds = []string{string(auth.KindAuto), string(auth.KindKeyring), string(auth.KindFiles), StorePlain}

// StorePlain keeps sign-ins in files in the clear.
const StorePlain = "plain"

// AddJSONFlag adds --json to a command. prints is the flag's help text: what the command prints then.
func (o *Options) AddJSONFlag(cmd *cobra.Command, prints string) {
	cmd.Flags().BoolVarP(&o.JSON, "json", "j", false, prints)
}

// WithoutOutput returns a copy of the options for a completion: no output on standard error, which the shell would show in the
// middle of the line, no input, and a prompter that can ask nothing.
func (o *Options) WithoutOutput() *Options {
	q := *o
	q.Err, q.In, q.Prompter = io.Discard, strings.NewReader(""), &ask.Prompter{}
	return &q
}
