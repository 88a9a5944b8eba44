package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// rulesInterval is the time between two looks at the file of rules.
const rulesInterval = 250 * time.Millisecond

// signalError says that the server behind the proxy died of a signal. The command then ends this program by the same signal.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "the server died of " + e.signal.String() }

// chaosProxyFlags holds the flags of chaos proxy.
type chaosProxyFlags struct {
	faults             []string
	rules, control     string
	url, listen        string
	log                string
	logBodies, summary bool
	seed               uint64
	// seeded says that --seed was given, and overrides the seed in the file of rules.
	seeded bool
}

const chaosProxyHelp = `Stands between any agent and any server, and breaks what the rules say and nothing else. Without a rule every byte passes
as it is.

  mcpvisor chaos proxy [flags] -- COMMAND ARGS…   as the server's command in the agent's configuration
  mcpvisor chaos proxy [flags] --url URL          a local address in front of a server over HTTP; it is printed first

A rule is one line: a fault of the catalogue, its parameters, and for which messages, how often and when.

  latency by=2s jitter=1s on=tools/call tool=echo chance=0.3     three calls of echo in ten take longer
  tool-error tool=write_* nth=3                                  every third call of a tool of that name fails
  die-mid-call times=1 at=30s                                    once, after half a minute
  throttle after=5s for=20s every=2m                             429 for 20 s of every two minutes (--url)

on, tool and server take patterns with * and commas; direction=server|client is where a message goes; chance, nth and
times are how often; at, for and every are when, from when the rule was added. mcpvisor chaos proxy faults lists the
faults. With the same --seed the same conversation breaks in the same way.

The exit code is the server's own, and so is the signal that it dies of.`

// newChaosProxy returns the command "chaos proxy" with its subcommands ctl and faults. An agent starts it in the place of its
// server, so that the exit code and the death by a signal are the server's.
func newChaosProxy(o *cli.Options) *cobra.Command {
	var f chaosProxyFlags
	cmd := &cobra.Command{
		Use:   "proxy [flags] (-- COMMAND ARGS… | --url URL)",
		Short: "Put faults between any agent and any server",
		Long:  chaosProxyHelp,
		Example: `  mcpvisor chaos proxy --fault 'hang-call tool=search' -- npx -y some-server
  mcpvisor chaos proxy --rules rules.yaml --log traffic.jsonl --url https://example.com/mcp
  mcpvisor chaos proxy --control word@127.0.0.1:7007 -- some-server
  mcpvisor chaos proxy ctl word@127.0.0.1:7007 add 'latency by=1s'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.seeded = cmd.Flags().Changed("seed")
			// The deferred calls of chaosProxy have run before this program replaces itself in dieBySignal.
			err := chaosProxy(o, cmd, args, f)
			var died *signalError
			if errors.As(err, &died) {
				return dieBySignal(died.signal)
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows the command belongs to it
	fl.StringArrayVar(&f.faults, "fault", nil, "break this: `'FAULT key=value …'` (repeatable)")
	fl.StringVar(&f.rules, "rules", "", "read rules from this `file`, and again whenever it changes")
	fl.Uint64Var(&f.seed, "seed", 1, "decides what is left to chance")
	fl.StringVar(&f.url, "url", "", "stand in front of the server at this `URL`")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:0", "with --url: listen at this `address`")
	fl.StringVar(&f.control, "control", "", "let rules be changed at this loopback `address` (PASSWORD@HOST:PORT; one is drawn and printed), or at the path of a socket")
	fl.StringVar(&f.log, "log", "", "write what passes and what was done to it to this `file`, one JSON object a line")
	fl.BoolVar(&f.logBodies, "log-bodies", false, "with --log: write whole messages too, with the secrets that are in them")
	fl.BoolVar(&f.summary, "summary", true, "say at the end what passed and what was done")
	cmd.AddCommand(newChaosProxyCtl(o), newChaosProxyFaults(o))
	return cmd
}

// chaosProxy stands between an agent and a server until either ends. It sets up, in this order, the rules, the log, the control
// endpoint, the watch of the rules' file and the summary; each is undone by a defer. Without a rule it passes every byte.
func chaosProxy(o *cli.Options, cmd *cobra.Command, args []string, f chaosProxyFlags) error {
	place := faults.Stdio
	switch {
	case f.url == "" && len(args) == 0:
		return exit.UsageError(cmd, "nothing to stand in front of; give a command after --, or --url")
	case f.url != "" && len(args) > 0:
		return exit.UsageError(cmd, "--url and a command: one of them")
	case f.logBodies && f.log == "":
		return exit.UsageError(cmd, "--log-bodies needs --log")
	case f.url != "":
		place = faults.HTTP
	}
	rules, err := f.readRules(place)
	if err != nil {
		return err
	}
	control, err := faults.New(rules.Seed)
	if err != nil {
		return err
	}
	// A rule that this kind of proxy cannot play is refused when it is set, not when it should fire.
	control = control.At(place)
	if err := control.Set(rules.Faults); err != nil {
		return exit.With(exit.Usage, err.Error())
	}
	// Track keeps counts that are only needed where rules may be added later.
	shared := proxy.Shared{Control: control, Track: f.rules != "" || f.control != "", Tally: &proxy.Tally{}}
	control.Watch(shared.Tally.Hit)
	if f.log != "" {
		// The log may hold secrets, so that only its owner may read it.
		file, err := os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return exit.With(exit.Usage, "--log: "+err.Error())
		}
		defer file.Close()
		shared.Log = proxy.NewLog(file, f.logBodies)
	}
	if f.control != "" {
		e, err := proxy.OpenEndpoint(f.control, control)
		if err != nil {
			return exit.With(exit.Usage, "--control: "+err.Error())
		}
		defer e.Close()
		fmt.Fprintln(o.Err, "chaos proxy: rules can be changed at", e.Address())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(cmd.Context())) // a Ctrl-C is the server's to handle, so that the proxy does not end before the server
	defer cancel()
	// A file that cannot be read after a change leaves the rules as they were; its goroutine ends with ctx.
	if f.rules != "" {
		go proxy.Watch(ctx, f.rules, rulesInterval, control, place, func(err error) {
			fmt.Fprintln(o.Err, "chaos proxy: the rules stay as they were:", messages.Printable(err.Error()))
		})
	}
	if f.summary && !o.Quiet {
		defer func() { shared.Tally.Summary(o.Err, control.List()) }()
	}
	if f.url != "" {
		return chaosProxyHTTP(cmd.Context(), o, f, shared)
	}
	return chaosProxyStdio(ctx, o, args, f, shared)
}

// readRules returns the rules of the file or of the flags, and the seed; without either there are no rules. The flags and the
// file exclude each other, because a change of the file replaces all rules.
func (f *chaosProxyFlags) readRules(place faults.Location) (proxy.File, error) {
	var out proxy.File
	if f.rules != "" {
		text, err := os.ReadFile(f.rules)
		if err != nil {
			return out, exit.With(exit.Usage, "--rules: "+err.Error())
		}
		if out, err = proxy.ParseFile(f.rules, text, place); err != nil {
			return out, exit.With(exit.Usage, err.Error())
		}
	}
	for _, line := range f.faults {
		r, err := faults.Parse(line)
		if err == nil {
			err = r.Check(place)
		}
		if err != nil {
			return out, exit.With(exit.Usage, fmt.Sprintf("--fault '%s': %v", line, err))
		}
		out.Faults = append(out.Faults, r)
	}
	if f.rules != "" && len(f.faults) > 0 {
		return out, exit.With(exit.Usage, "--rules and --fault: a file that changes replaces all rules; write them all into it")
	}
	// --seed wins over the file; without either the seed is 1, the default of the flag.
	if f.seeded || out.Seed == 0 {
		out.Seed = f.seed
	}
	return out, nil
}

// chaosProxyStdio runs the server as a child process and passes signals on to it. It returns when the server has ended, with
// the server's exit code, or with a signalError.
func chaosProxyStdio(ctx context.Context, o *cli.Options, args []string, f chaosProxyFlags, shared proxy.Shared) error {
	// The agent may end its server with a signal; the proxy hands the signal on and ends when the server does.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	s := &proxy.Stdio{Shared: shared, Command: args[0], Args: args[1:], In: o.In, Out: o.Out, Err: o.Err, Signals: signals}
	if g, err := guardian.Start(); err == nil {
		s.Guard = g
		defer func() { _ = g.Close() }()
	} else {
		fmt.Fprintln(o.Err, "chaos proxy: no guardian could be started: the server may stay behind if this process is killed:",
			messages.Line(err.Error(), 200))
	}
	ended, err := s.Run(ctx)
	switch {
	case err != nil:
		return exit.With(exit.Usage, err.Error())
	case ended.Signal != 0:
		return &signalError{ended.Signal}
	case ended.Code != 0:
		return &exit.Error{Code: ended.Code}
	}
	return nil
}

// chaosProxyHTTP prints its address on the first line of standard output, and serves until the person interrupts it, which is
// the normal end and no error.
func chaosProxyHTTP(ctx context.Context, o *cli.Options, f chaosProxyFlags, shared proxy.Shared) error {
	h, err := proxy.NewHTTP(f.url, f.listen, shared)
	if err != nil {
		return exit.With(exit.Usage, err.Error())
	}
	fmt.Fprintln(o.Out, h.URL())
	if err := h.Serve(ctx); err != nil {
		return exit.With(exit.Failed, err.Error())
	}
	return nil
}

// newChaosProxyFaults returns the command "chaos proxy faults". A proxy can play other faults before a command than before a
// URL, therefore it has a flag.
func newChaosProxyFaults(o *cli.Options) *cobra.Command {
	var urls bool
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "List the faults that a proxy can do, with their parameters",
		Example: `  mcpvisor chaos proxy faults
  mcpvisor chaos proxy faults --url`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if o.JSON {
				return terminal.PrintJSON(o.Out, proxyFaults(urls))
			}
			listFaults(o.Out, urls)
			return nil
		},
	}
	o.AddJSONFlag(cmd, "print a JSON array")
	cmd.Flags().BoolVar(&urls, "url", false, "those in front of a server over HTTP, not of a command")
	return cmd
}

// proxyFault is one fault as chaos proxy faults --json prints it.
type proxyFault struct {
	Name string `json:"name"`
	Does string `json:"does"`
	// Not says why a proxy at this place cannot play the fault; empty if it can.
	Not    string       `json:"not,omitempty"`
	Params []faultParam `json:"params,omitempty"`
}

// faultParam is one parameter of a fault. An empty default means that the person must give a value.
type faultParam struct {
	Name    string `json:"name"`
	Default string `json:"default,omitempty"`
	Does    string `json:"does"`
}

// proxyFaults returns all faults for a proxy before a command, or with urls before a server over HTTP.
func proxyFaults(urls bool) (all []proxyFault) {
	place := faults.Stdio
	if urls {
		place = faults.HTTP
	}
	for _, k := range faults.Kinds() {
		p := proxyFault{Name: k.Name, Does: k.DoesAt(place)}
		if k.ProblemAt(place) != "" {
			p.Not = k.Why
		}
		for _, param := range k.ParamsAt(place) {
			p.Params = append(p.Params, faultParam{param.Name, param.Default, param.Does})
		}
		all = append(all, p)
	}
	return all
}

// listFaults prints the same for people, with the parameters indented below each fault.
func listFaults(w io.Writer, urls bool) {
	place := faults.Stdio
	if urls {
		place = faults.HTTP
	}
	for _, k := range faults.Kinds() {
		if reason := k.ProblemAt(place); reason != "" {
			fmt.Fprintf(w, "%-20s not here: %s\n", k.Name, k.Why)
			continue
		}
		fmt.Fprintf(w, "%-20s %s\n", k.Name, k.DoesAt(place))
		for _, p := range k.ParamsAt(place) {
			value := p.Default
			if value == "" {
				value = "…"
			}
			fmt.Fprintf(w, "%-22s%s=%s  %s\n", "", p.Name, value, p.Does)
		}
	}
}

// newChaosProxyCtl returns the command "chaos proxy ctl", the client of a proxy that was started with --control.
func newChaosProxyCtl(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ctl ADDRESS (list | add 'FAULT key=value …' | remove NAME | clear)",
		Short: "Change the rules of a running proxy that was started with --control",
		Example: `  mcpvisor chaos proxy ctl word@127.0.0.1:7007 list
  mcpvisor chaos proxy ctl word@127.0.0.1:7007 add 'latency by=1s'`,
		Args: func(cmd *cobra.Command, args []string) error {
			// want maps each verb to the number of arguments, the address and the verb included.
			want := map[string]int{"list": 2, "clear": 2, "add": 3, "remove": 3}
			if len(args) < 2 || want[args[1]] != len(args) {
				return exit.UsageError(cmd, "give the proxy's address, and list, add 'RULE', remove NAME or clear")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := chaosProxyCtl(cmd.Context(), o, args); err != nil {
				var coded *exit.Error
				if errors.As(err, &coded) {
					return err
				}
				return exit.With(exit.Usage, err.Error())
			}
			return nil
		},
	}
	o.AddJSONFlag(cmd, "print JSON: an array of the rules; of a rule that was added its name")
	return cmd
}

// chaosProxyCtl makes one request to the proxy at args[0] and prints its answer.
func chaosProxyCtl(ctx context.Context, o *cli.Options, args []string) error {
	c := proxy.NewClient(args[0])
	switch args[1] {
	case "add":
		name, err := c.Add(ctx, args[2])
		if err != nil {
			return err
		}
		if o.JSON {
			return terminal.PrintJSON(o.Out, struct {
				Name string `json:"name"`
			}{name})
		}
		fmt.Fprintln(o.Out, name)
		return nil
	case "remove":
		return c.Remove(ctx, args[2])
	case "clear":
		return c.Clear(ctx)
	}
	// The remaining verb is list; Args has checked the word.
	rules, err := c.List(ctx)
	if err != nil {
		return err
	}
	if o.JSON {
		return terminal.PrintJSON(o.Out, terminal.OrEmpty(rules))
	}
	for _, s := range rules {
		state := "now"
		if !s.Active {
			state = "not now"
		}
		fmt.Fprintf(o.Out, "%s  (%s, %d done, %d messages looked at)\n", messages.Printable(s.Rule.String()), state, s.Done, s.Matched)
	}
	return nil
}
