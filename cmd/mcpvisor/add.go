package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
)

// addFlags are those of add and add-json.
type addFlags struct {
	scope, transport, alias, clientID string
	env, headers                      []string
	callbackPort                      int
	replace, noConnect, noAsk, asJSON bool
	wait                              time.Duration
	install                           installFlags
}

// addArgs is what add was given besides flags: a command, a URL, or the name of a server of a registry.
type addArgs struct {
	name, url, ref string
	command        []string
}

func newAdd(o *options) *cobra.Command {
	var f addFlags
	var a addArgs
	cmd := &cobra.Command{
		Use:   "add NAME [flags] [--] COMMAND [ARGUMENT…] | NAME URL | SERVER-OF-THE-REGISTRY",
		Short: "Add a server, connect it once and show its tools",
		Long: `Writes a server into a configuration file, connects it once and shows the tools that it offers.

  NAME COMMAND ARGUMENT…   a program. Everything after COMMAND belongs to it; mcpvisor's own flags stand before
  NAME URL                 a remote server: HTTP, or SSE if it knows nothing newer
  SERVER                   a server of the MCP registry: its whole name, or a short one that is unique (mcpvisor search);
                           NAME@VERSION takes a version that is not the newest

Scopes: local is yours in this project (.mcpvisor/mcp.local.json, the default), project is for all who work on it (.mcp.json),
user is yours everywhere. What you add yourself needs no approval. What the registry says is shown whole, and asked about.

On a terminal you are asked, without echo, for what is missing: --env NAME without a value, variables that are not set, what
the registry says a server needs, and a token or a sign-in if the server wants one. A secret that others should not read is
written as ${NAME}, which is taken from the environment at each start.

A server that does not connect stays in the file, and what to do is said.

Exit codes: 0 added, and connected unless --no-connect · 1 added, but it does not connect · 2 nothing was changed.`,
		Example: `  mcpvisor add files npx -y @modelcontextprotocol/server-filesystem .
  mcpvisor add db --env 'DSN=${DSN}' -- db-mcp --read-only
  mcpvisor add search https://mcp.example.com/mcp --header 'Authorization: Bearer ${SEARCH_TOKEN}'
  mcpvisor add io.github.owner/server --scope user`,
		Args: func(cmd *cobra.Command, args []string) error { return a.parse(cmd, args, f.transport) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if help, _ := cmd.Flags().GetBool("help"); help { // it stood after the name
				return cmd.Help()
			}
			return o.addServer(cmd, a, f)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.addSharedTo(cmd)
	flags.StringVarP(&f.transport, "transport", "t", "", "how it is reached: `stdio`, http, sse or ws (default: by what is given)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set a variable for a program: `KEY=VALUE`; KEY alone asks for the value (repeatable)")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "send a header to a remote server: `'NAME: VALUE'` (repeatable)")
	flags.StringVar(&f.clientID, "client-id", "", "sign in as this OAuth `client`")
	flags.IntVar(&f.callbackPort, "callback-port", 0, "wait for the browser on this `port` when signing in")
	flags.StringVar(&f.alias, "as", "", "call a server of the registry `NAME`")
	f.install.addTo(flags)
	_ = cmd.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions([]string{"stdio", "http", "sse", "ws"}, // it exists
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// addSharedTo are the flags that add and add-json share.
func (f *addFlags) addSharedTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.scope, "scope", "s", "local", "write into the file of this `scope`: local, project or user")
	flags.BoolVar(&f.replace, "replace", false, "replace a server of the same name")
	flags.BoolVar(&f.noConnect, "no-connect", false, "only write the file")
	flags.BoolVar(&f.noAsk, "no-ask", false, "ask nothing, also on a terminal")
	flags.BoolVarP(&f.asJSON, "json", "j", false, "print a JSON object")
	flags.DurationVar(&f.wait, "wait", 60*time.Second, "how long the server may take to connect")
	completeScope(cmd)
}

// assignmentPattern is the beginning of NAME=VALUE.
var assignmentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`) })

var schemePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`) })

// parse reads what stands after the flags. Flags may follow the name and a URL as well; what follows a command is its own.
func (a *addArgs) parse(cmd *cobra.Command, args []string, transport string) error {
	fs := cmd.Flags()
	more := func(words []string) ([]string, error) {
		if fs.ArgsLenAtDash() >= 0 {
			return words, nil
		}
		if err := fs.Parse(words); err != nil {
			return nil, cmd.FlagErrorFunc()(cmd, err)
		}
		return fs.Args(), nil
	}
	if len(args) == 0 {
		return usageError(cmd, "what is to be added? Write mcpvisor add NAME COMMAND…, mcpvisor add NAME URL, or mcpvisor add "+
			"and the name of a server of the registry")
	}
	rest, err := more(args[1:])
	if err != nil {
		return err
	}
	if f := fs.Lookup("transport"); f != nil {
		transport = f.Value.String()
	}
	a.name = args[0]
	switch {
	case fs.Changed("env") && assignmentPattern().MatchString(a.name): // the value may be a secret
		return usageError(cmd, "--env takes one variable; write it again before the next one: --env A=1 --env B=2 NAME COMMAND…")
	case len(rest) > 0 && assignmentPattern().MatchString(rest[0]):
		return usageError(cmd, "a variable stands where the command belongs; write each with its own --env: mcpvisor add NAME --env A=1 "+
			"--env B=2 COMMAND…")
	case len(rest) == 0 && schemePattern().MatchString(a.name):
		return usageError(cmd, "give the server a name: mcpvisor add NAME URL")
	case len(rest) == 0 && transport != "":
		return usageError(cmd, "what is %q? Write the command or the URL after the name", messages.Line(a.name, 80))
	case len(rest) == 0:
		a.name, a.ref = "", args[0]
	case schemePattern().MatchString(rest[0]), transport != "" && transport != string(messages.Stdio):
		a.url = rest[0]
		if rest, err = more(rest[1:]); err != nil {
			return err
		}
		if len(rest) > 0 { // which may be a secret
			return usageError(cmd, "something follows the URL that is no flag; a header is --header 'NAME: VALUE'")
		}
	default:
		a.command = rest
	}
	return nil
}

// strayFlag names a flag of ours that stands among the arguments of a command, where it is the command's.
func (a addArgs) strayFlag(cmd *cobra.Command) string {
	if cmd.Flags().ArgsLenAtDash() >= 0 || len(a.command) == 0 {
		return ""
	}
	for _, word := range a.command[1:] {
		name, _, _ := strings.Cut(word, "=")
		if slices.Contains([]string{"--scope", "--env", "--header", "--transport", "--replace", "--no-connect"}, name) {
			return name
		}
	}
	return ""
}

func (o *options) addServer(cmd *cobra.Command, a addArgs, f addFlags) error {
	scope, err := readScope(cmd, f.scope)
	if err != nil {
		return err
	}
	w, err := o.openEntryWriter(cmd, scope, f)
	if err != nil {
		return err
	}
	if a.ref == "" {
		if err := w.checkNameFree(a.name); err != nil {
			return err
		}
	}
	if word := a.strayFlag(cmd); word != "" {
		o.printRemark("%s stands after the command and is given to it; flags of mcpvisor stand before NAME", word)
	}
	spec, err := w.specOf(&a)
	if err != nil {
		return err
	}
	if spec, err = w.askUnset(a.name, spec); err != nil {
		return err
	}
	return w.writeEntry(a.name, spec, entryText(spec))
}

func newAddJSON(o *options) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add-json NAME JSON",
		Short: "Add a server whose entry is written as JSON",
		Long: `Writes a server into a configuration file, with the JSON of its entry as it would stand under its name: what other
programs call its keys is understood. "-" reads the JSON from standard input. Everything else is as with mcpvisor add.`,
		Example: `  mcpvisor add-json search '{"type": "http", "url": "https://mcp.example.com/mcp"}'
  mcpvisor add-json files --scope user '{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"]}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError(cmd, `write mcpvisor add-json NAME '{"command": "…"}'`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.addJSON(cmd, args[0], args[1], f) },
	}
	f.addSharedTo(cmd)
	return cmd
}

func (o *options) addJSON(cmd *cobra.Command, name, text string, f addFlags) error {
	scope, err := readScope(cmd, f.scope)
	if err != nil {
		return err
	}
	w, err := o.openEntryWriter(cmd, scope, f)
	if err != nil {
		return err
	}
	if err := w.checkNameFree(name); err != nil {
		return err
	}
	entry, err := entryJSON(text, o.in)
	if err != nil {
		return &exitError{exitUsage, fmt.Sprintf("add-json: %v", err)}
	}
	spec, err := specOfJSON(name, entry)
	if err != nil {
		return err
	}
	return w.writeEntry(name, spec, entry)
}
