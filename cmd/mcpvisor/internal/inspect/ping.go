package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// pingFlags holds the flags of ping.
type pingFlags struct {
	// count is the number of questions to each server, a second apart.
	count int
	json  bool
	// wait bounds connecting, timeout each answer.
	wait, timeout time.Duration
}

// NewPing returns the command "ping", which runs pingServers. Several servers may be named, and are asked one after another.
func NewPing(o *cli.Options) *cobra.Command {
	var f pingFlags
	cmd := &cobra.Command{
		Use:   "ping SERVER…",
		Short: "Ask servers for a sign of life and say how long it takes",
		Long: `Asks each server for a sign of life and says how long the answer took, and in which era of the protocol the
server speaks (legacy: a ping; modern, which has none: server/discover). An error is a sign of life too.

Exit code 3: a server is not connected, or did not answer.`,
		Example: `  mcpvisor ping files
  mcpvisor ping files search --count 5`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return exit.UsageError(cmd, "which server? Write mcpvisor ping SERVER")
			case f.count < 1:
				return exit.UsageError(cmd, "--count: ask at least once")
			}
			return nil
		},
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServers),
		RunE:              func(cmd *cobra.Command, args []string) error { return pingServers(o, cmd, args, f) },
	}
	cmd.Flags().IntVar(&f.count, "count", 1, "ask each server so often, a second apart")
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print a JSON array")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Second, "how long each answer may take")
	cmd.Flags().DurationVar(&f.wait, "wait", 30*time.Second, "how long servers may take to connect")
	return cmd
}

// pingReport is the outcome for one server, as ping --json prints it.
type pingReport struct {
	Server          string       `json:"server"`
	Answered        bool         `json:"answered"`
	Era             messages.Era `json:"era,omitempty"`
	ProtocolVersion string       `json:"protocolVersion,omitempty"`
	// RoundTripsMs holds the times of the answers in milliseconds; Lost counts the answers that did not come.
	RoundTripsMs []float64 `json:"roundTripsMs"`
	Lost         int       `json:"lost"`
	Error        string    `json:"error,omitempty"`
}

// pingServers asks each server in turn as often as --count says, a second apart. One lost answer makes the exit code 3.
func pingServers(o *cli.Options, cmd *cobra.Command, names []string, f pingFlags) error {
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.StartServers(ctx, names, nil); err != nil {
		return err
	}
	all, err := p.AwaitStatus(ctx, f.wait, names...)
	if err != nil {
		return err
	}
	failed := false
	results := make([]pingReport, 0, len(all))
	for _, st := range all {
		r := pingReport{Server: st.Name, Era: st.Era, ProtocolVersion: st.ProtocolVersion, RoundTripsMs: []float64{}}
		// A second lies between two pings, as with the ping of networks.
		for i := 0; i < f.count; i++ {
			if i > 0 && !sleepContext(ctx, time.Second) {
				return exit.InterruptedError(ctx)
			}
			pingOnce(ctx, o, p, st, &r, f)
			if stop := exit.InterruptedError(ctx); stop != nil {
				return stop
			}
			// A server that is not connected will not be a second later.
			if !status.IsCallable(st) {
				break
			}
		}
		if r.Era == "" && r.Answered { // it was lazy: the ping has connected it
			if now, err := p.AwaitStatus(ctx, 0, st.Name); err == nil {
				r.Era, r.ProtocolVersion = now[0].Era, now[0].ProtocolVersion
			}
		}
		// One lost answer among several means that the server is not well.
		r.Answered = r.Lost == 0
		failed = failed || !r.Answered
		results = append(results, r)
	}
	if f.json {
		if err := terminal.PrintJSON(o.Out, results); err != nil {
			return err
		}
	}
	if failed {
		return &exit.Error{Code: exit.NotSent}
	}
	return nil
}

// pingOnce asks one server once, prints the time or the failure, and counts it in r.
func pingOnce(ctx context.Context, o *cli.Options, p *project.Project, st messages.Status, r *pingReport, f pingFlags) {
	var took time.Duration
	var err error
	if !status.IsCallable(st) {
		// No call was made: an outcome in the error would let a reader look for one.
		e := p.UnreachableError(st)
		e.Outcome, err = "", e
	} else {
		bounded, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		took, err = p.Ping(bounded, st.Name)
	}
	if err != nil {
		r.Lost++
		r.Error = messages.Line(err.Error(), 400)
		o.WarnFailure(err)
		return
	}
	r.Answered = true
	r.RoundTripsMs = append(r.RoundTripsMs, float64(took.Microseconds())/1000)
	if f.json {
		return
	}
	// A lazy server has no era yet: the ping itself connects it.
	about := ""
	if st.Era != "" {
		about = fmt.Sprintf("  (%s, %s)", st.Era, messages.Line(st.ProtocolVersion, 20))
	}
	fmt.Fprintf(o.Out, "%s: %.2f ms%s\n", messages.Line(st.Name, 60), float64(took.Microseconds())/1000, about)
}

// sleepContext waits for d, and returns false if the command was interrupted before.
func sleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
