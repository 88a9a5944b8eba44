package main

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

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// options holds what every command shares in one run: the streams and the values of the persistent flags. run makes one per
// process; cobra writes the flags into it before a command runs, and from then on only the command's goroutine changes it.
type options struct {
	streams
	// dir is the value of --dir, empty if not given; applyFlags changes the working directory to it.
	dir string
	// configs and servers are the values of --config and --mcp-server. They count as dynamic scope and need no approval.
	configs []string
	servers []string
	// only leaves out every file but those of --config, --mcp-server and the organisation.
	only bool
	// quiet suppresses progress, hints and notices (see printRemark); errors are printed all the same.
	quiet bool
	// json says that the command prints for programs; failures then collects what failed without ending the command, and
	// reportError prints it as part of one object.
	json     bool
	failures *failures
	// misread is true until cobra has parsed the command line. While it is true the value of json cannot be trusted, and run
	// looks for --json itself.
	misread bool
	// approve starts unapproved servers of the project for this run and remembers nothing; inheritEnv passes the whole
	// environment of this process to servers.
	approve    bool
	inheritEnv bool
	// logLevel is the value of --log-level; empty means logDefault.
	logLevel string
	// noControl neither connects to nor opens the control socket of the project.
	noControl bool
	// waitFlag is the value of --wait of the running command, 0 if the person did not give it or the command has no such flag.
	waitFlag time.Duration
	audit    auditFlags
	askFlags askFlags
	// prompter asks the person, on behalf of servers and of commands. A shell completion has an empty one, see withoutOutput.
	prompter *prompter
	// ctx is the context of the command, under which the configuration is read. If it is nil, an interrupt does not end the
	// reading.
	ctx context.Context
	// store says where sign-ins are kept: one of storeKinds, or empty for the default, auto.
	store string
	// logDefault is the log level of the command when --log-level is not given.
	logDefault zapcore.Level
}

// newOptions returns the options of a run whose command line has not been read.
func newOptions(ctx context.Context, s streams, d *prompter) *options {
	return &options{streams: s, prompter: d, ctx: ctx, logDefault: zapcore.ErrorLevel, failures: &failures{}, misread: true}
}

// addFlags adds the persistent flags of the program.
func (o *options) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.dir, "dir", "C", "", "run as if started in this `directory`")
	f.StringArrayVarP(&o.configs, "config", "c", nil,
		"read this `file` as well, which needs no approval then (repeatable; - is standard input)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print results and errors alone: no progress, no hints, no notices")
	f.StringArrayVar(&o.servers, "mcp-server", nil,
		"add a `server`: NAME=URL, NAME=\"COMMAND ARGS…\" or NAME={json} (repeatable)")
	f.BoolVar(&o.only, "only", false, "of all files count those of --config and --mcp-server alone, and the organisation's")
	f.BoolVar(&o.approve, "approve", false, "for this run, start servers found in the project that nobody approved yet")
	f.BoolVar(&o.inheritEnv, "inherit-env", false, "give servers the whole environment, not the short list of variables")
	f.StringVar(&o.logLevel, "log-level", "", "log to standard error from this `level` on: debug, info, warn or error")
	f.BoolVar(&o.noControl, "no-control", false, "do not use (or, with up, open) the control socket of this project")
	o.audit.addTo(f)
	o.askFlags.addTo(f)
	f.StringVar(&o.store, "store", "", "keep sign-ins in auto, keyring, files (encrypted) or plain (files in the clear); "+
		"the same for every command, and $MCPVISOR_STORE if not given")
}

// readCommandLine takes from a command line that cobra has parsed what concerns every command, and applies it. It runs before
// any command's own code.
func (o *options) readCommandLine(cmd *cobra.Command) error {
	o.misread = false
	if f := cmd.Flags().Lookup("json"); f != nil {
		o.json = f.Value.String() == "true"
	}
	if cmd.Flags().Changed("wait") {
		o.waitFlag, _ = cmd.Flags().GetDuration("wait") // the flag is a duration in every command that has it
	}
	return o.applyFlags()
}

// applyFlags validates the persistent flags and makes them count before any command runs: it changes the working directory and
// reads the files that the answers to questions come from. Each error is an exitError with exitUsage.
func (o *options) applyFlags() error {
	if err := checkHomeDirs(o.err); err != nil {
		return err
	}
	if o.logLevel != "" {
		if _, err := zapcore.ParseLevel(o.logLevel); err != nil {
			return exitWith(exitUsage, fmt.Sprintf("--log-level: %q is no level; use debug, info, warn or error",
				messages.Line(o.logLevel, 40)))
		}
	}
	if o.only && len(o.configs)+len(o.servers) == 0 {
		return exitWith(exitUsage, "--only: it needs --config FILE or --mcp-server NAME=… that counts")
	}
	if o.store == "" {
		o.store = os.Getenv("MCPVISOR_STORE")
	}
	if o.store != "" && !slices.Contains(storeKinds, o.store) {
		return exitWith(exitUsage, fmt.Sprintf("--store: %q is no place for sign-ins; use %s",
			messages.Line(o.store, 40), strings.Join(storeKinds, ", ")))
	}
	// --dir comes after the checks that do not touch the disk and before askFlags, whose file names are relative to it.
	if o.dir != "" {
		if err := os.Chdir(o.dir); err != nil {
			text := err.Error()
			if errors.Is(err, os.ErrNotExist) {
				text = "there is no such directory"
			}
			return exitWith(exitUsage, fmt.Sprintf("--dir: %q: %s", messages.Line(o.dir, 200), text))
		}
	}
	return o.askFlags.readValues(o.prompter)
}

// storeKinds lists the words of --store.
var storeKinds = []string{string(auth.KindAuto), string(auth.KindKeyring), string(auth.KindFiles), storePlain}

// storePlain keeps sign-ins in files in the clear.
const storePlain = "plain"

// addJSONFlag adds --json to a command. prints is the flag's help text: what the command prints then.
func (o *options) addJSONFlag(cmd *cobra.Command, prints string) {
	cmd.Flags().BoolVarP(&o.json, "json", "j", false, prints)
}

// withoutOutput returns a copy of the options for a completion: no output on standard error, which the shell would show in the
// middle of the line, no input, and a prompter that can ask nothing.
func (o *options) withoutOutput() *options {
	q := *o
	q.err, q.in, q.prompter = io.Discard, strings.NewReader(""), &prompter{}
	return &q
}
