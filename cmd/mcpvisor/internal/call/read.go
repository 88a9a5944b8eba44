package call

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// readFlags holds the flags of read.
type readFlags struct {
	// server names the server to ask; empty finds the one that offers the URI.
	server, output string
	// json prints the result object as the server sent it and excludes output; watch reads again at each change until Ctrl-C.
	json, watch bool
	// part is the number of the only part to print, from 1 on; 0 prints all.
	part int
	// wait bounds how long servers may take to connect; without server also how long offers are waited for.
	wait time.Duration
}

// NewRead returns the command "read", which runs readResource.
func NewRead(o *cli.Options) *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Read a resource of a server",
		Long: `Reads a resource and prints its text; several parts come one after the other, each under its URI. The
server that offers the URI is found, and said on standard error; --server names it, and must if several offer it. When
one is found, servers that are still connecting, or do not list what they offer, have ten seconds at most to offer it too.
Those that are still connecting are named.

What acts on a terminal is neutralised in text. --output writes the bytes exactly as they are, to a file or, with -,
to standard output. A resource that is no text goes to a file or into a pipe, not to a terminal.

With --watch it is printed again whenever the server says that it changed, until Ctrl-C.

Exit codes: 0 read · 1 it cannot be printed or written · 2 usage, or a URI that no server offers · 3 not sent · 4 the answer
was lost · 5 rejected by the server.`,
		Example: `  mcpvisor read file:///project/README.md
  mcpvisor read demo://picture --server one --output picture.png
  mcpvisor read demo://state --watch`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.UsageError(cmd, "which resource? Write mcpvisor read URI")
			}
			return nil
		},
		ValidArgsFunction: project.CompleteWith(o, completeURI),
		RunE:              func(cmd *cobra.Command, args []string) error { return readResource(o, cmd, args[0], f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.server, "server", "", "ask this `server`, also for what it does not list")
	fl.StringVarP(&f.output, "output", "o", "", "write the bytes into this `file`; - is standard output")
	fl.IntVar(&f.part, "part", 0, "only the part with this `number`, from 1 on")
	fl.BoolVarP(&f.json, "json", "j", false, "print the server's result object unchanged")
	fl.BoolVar(&f.watch, "watch", false, "print it again whenever it changes")
	fl.DurationVar(&f.wait, "wait", 30*time.Second, "how long servers may take to connect")
	_ = cmd.RegisterFlagCompletionFunc("server", project.CompleteWith(o, completeFlagServer)) // this flag exists
	return cmd
}

// readResource reads a resource and prints it, with --watch again at each change. Without --server the server is found by what
// servers offer, and awaitOffer gives slow ones the time to offer the same URI.
func readResource(o *cli.Options, cmd *cobra.Command, uri string, f readFlags) error {
	switch {
	case f.json && f.output != "":
		return exit.UsageError(cmd, "--json and --output exclude each other")
	case f.part < 0:
		return exit.UsageError(cmd, "--part: parts are counted from 1 on")
	}
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	var silent []string
	if f.server != "" {
		err = connectServer(ctx, p, f.server, f.wait)
	} else if err = p.StartServers(ctx, nil, nil); err == nil {
		silent, err = awaitOffer(ctx, p, uri, f.wait)
	}
	if err != nil {
		return err
	}
	// A server that has not answered yet may offer the same URI, and the person should know which.
	unknown := ""
	if len(silent) > 0 {
		unknown = "; not known yet what is offered by " + terminal.JoinNames(silent)
	}
	// readOnce reads and prints. A server that does not know the URI makes the error name a similar one.
	readOnce := func(server string) error {
		res, err := p.Read(ctx, control.Read{Server: server, URI: uri, CallHooks: defaultHooks(p)})
		if err != nil {
			return suggestURI(ctx, p, err, uri, f.server, silent...)
		}
		if server == "" {
			o.PrintRemark("read from %s%s", messages.Line(res.Server, 200), unknown)
		}
		return printResource(o, res, f)
	}
	if !f.watch {
		return readOnce(f.server)
	}
	server := f.server
	if server == "" { // the server must be known before it can be asked to report changes
		res, err := p.Read(ctx, control.Read{URI: uri, CallHooks: defaultHooks(p)})
		if err != nil {
			return suggestURI(ctx, p, err, uri, "", silent...)
		}
		server = res.Server
	}
	// Watch calls the function at once and then at each change.
	first := true
	err = p.Watch(ctx, server, uri, func() error {
		if !first {
			o.PrintRemark("%s changed at %s", messages.Line(uri, 200), time.Now().Format("15:04:05"))
		}
		first = false
		return readOnce(server)
	})
	if ctx.Err() != nil { // Ctrl-C is how a watch ends
		return nil
	}
	return err
}

// connectServer connects the named server, or all if the name is empty, and returns an error that says why the named one is not
// callable. Without a name it is no error if servers fail.
func connectServer(ctx context.Context, p *project.Project, server string, wait time.Duration) error {
	if server == "" {
		if err := p.StartServers(ctx, nil, nil); err != nil {
			return err
		}
		_, err := p.AwaitStatus(ctx, wait)
		return err
	}
	if err := p.StartServers(ctx, []string{server}, nil); err != nil {
		return err
	}
	return awaitServer(ctx, p, server, wait)
}

// awaitServer waits for a server, and returns an error that says why it cannot be asked if it is not callable then.
func awaitServer(ctx context.Context, p *project.Project, server string, wait time.Duration) error {
	all, err := p.AwaitStatus(ctx, wait, server)
	if err == nil && !status.IsCallable(all[0]) {
		err = p.UnreachableError(all[0])
	}
	return err
}

// suggestTime bounds the search for a URI to suggest. A server that answers nothing must not delay the error.
const suggestTime = time.Second

// suggestURI adds the nearest URI that servers offer to the error about an unknown resource, and the servers that were not
// connected in time, since the resource may be theirs. Other errors pass unchanged.
func suggestURI(ctx context.Context, p *project.Project, err error, uri, server string, silent ...string) error {
	var e *messages.Error
	if !errors.Is(err, messages.ErrUnknownResource) || !errors.As(err, &e) {
		return err
	}
	var only []string
	if server != "" {
		only = []string{server}
	}
	bounded, cancel := context.WithTimeout(ctx, suggestTime)
	defer cancel()
	all, _ := p.Resources(bounded, only...) // a failure means nothing to suggest
	uris := make([]string, len(all))
	for i := range all {
		uris[i] = all[i].URI
	}
	// The copy keeps the error of the backend as it is: another caller may share it.
	detailed := *e
	if len(silent) > 0 {
		detailed.Text += "; not connected yet: " + terminal.JoinNames(silent)
	}
	detailed.Fix = "see: mcpvisor resources"
	if server != "" {
		detailed.Fix += " " + terminal.ShellWord(server)
	}
	if near := messages.Nearest(uri, uris); near != "" {
		detailed.Fix = fmt.Sprintf("did you mean %q?", messages.Line(near, 200))
	}
	return &detailed
}

// printResource prints what was read, or writes it with --output. Several parts come one after the other, each below its URI.
func printResource(o *cli.Options, res control.ReadResult, f readFlags) error {
	if f.json {
		printRaw(o, res.Raw)
		return nil
	}
	parts := res.Contents()
	if parts == nil {
		return exit.With(exit.Failed, "the server's answer is no resource; --json prints it")
	}
	if f.part > 0 {
		if f.part > len(parts) {
			return exit.With(exit.Usage, fmt.Sprintf("--part %d: the resource has %s", f.part, terminal.CountOf(len(parts), "part")))
		}
		parts = parts[f.part-1 : f.part]
	}
	// The bytes go out as they are: escaping would spoil a file.
	if f.output != "" {
		return writePart(o, parts, f.output)
	}
	for i := range parts {
		if len(parts) > 1 {
			fmt.Fprintf(o.Out, "==> %s <==\n", strings.TrimSpace(messages.Line(parts[i].URI+" "+parts[i].MIMEType, 0)))
		}
		if err := printPart(o, &parts[i], len(parts) > 1); err != nil {
			return err
		}
	}
	return nil
}

// printPart prints one part. Bytes that are no text go into a pipe as they are, and never to a terminal; beside other parts
// they are only described.
func printPart(o *cli.Options, c *supervisor.ResourceContent, several bool) error {
	if c.Blob == "" {
		if text := messages.Printable(c.Text); text != "" {
			fmt.Fprintln(o.Out, strings.TrimSuffix(text, "\n"))
		}
		return nil
	}
	bytes, err := c.Bytes()
	switch {
	case err != nil:
		return exit.With(exit.Failed, "the server's answer is no base64; --json prints it")
	case several:
		fmt.Fprintf(o.Out, "[%s of %s]\n", terminal.SizeText(int64(len(bytes))), mimeTypeText(c))
		return nil
	case terminal.IsTerminal(o.Out):
		return exit.With(exit.Failed, fmt.Sprintf("the resource is no text but %s of %s; write it to a file with --output FILE",
			terminal.SizeText(int64(len(bytes))), mimeTypeText(c)))
	}
	// Standard output is a pipe or a file here, which gets the bytes as they are.
	_, err = o.Out.Write(bytes)
	return err
}

// mimeTypeText returns the type of a part for a sentence; "bytes" if the server gives none.
func mimeTypeText(c *supervisor.ResourceContent) string {
	if c.MIMEType == "" {
		return "bytes"
	}
	return messages.Line(c.MIMEType, 60)
}

// writePart writes the bytes of the only part to a file. Several parts are an error, because a file holds one.
func writePart(o *cli.Options, parts []supervisor.ResourceContent, path string) error {
	if len(parts) != 1 {
		return exit.With(exit.Usage, fmt.Sprintf("the resource has %s, and --output takes one: choose it with --part NUMBER",
			terminal.CountOf(len(parts), "part")))
	}
	bytes, err := parts[0].Bytes()
	if err != nil {
		return exit.With(exit.Failed, "the server's answer is no base64; --json prints it")
	}
	return writeOutputFile(o, path, bytes)
}

// printRaw prints a server's JSON byte for byte into a pipe. For a terminal it is escaped, which means the same.
func printRaw(o *cli.Options, raw []byte) {
	text := string(raw)
	if terminal.IsTerminal(o.Out) {
		text = terminal.EscapeUnsafe(text)
	}
	fmt.Fprintln(o.Out, text)
}

// completeURI offers the resources that a running mcpvisor up lists; it starts no server for a press of the tab key.
func completeURI(o *cli.Options, cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return project.CompleteFrom(o, func(ctx context.Context, p *project.Project) ([]cobra.Completion, cobra.ShellCompDirective) {
		if p.Up == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var only []string
		if server, err := cmd.Flags().GetString("server"); err == nil && server != "" {
			only = []string{server}
		}
		all, _ := p.Resources(ctx, only...) // what cannot be listed cannot be offered
		var out []cobra.Completion
		for i := range all {
			out = append(out, cobra.CompletionWithDesc(messages.Line(all[i].URI, 0),
				nameText(all[i].Name, all[i].Title, all[i].Description)))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

// completeFlagServer offers servers as the value of --server. It ignores the arguments, because the flag may follow the URI.
func completeFlagServer(o *cli.Options, cmd *cobra.Command, _ []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	return project.CompleteServer(o, cmd, nil, word)
}
