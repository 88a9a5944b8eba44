package manage

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/registry"
	"github.com/mcpvisor/mcpvisor/messages"
)

// addFlags holds the flags of add and add-json. The fields of flags that only add has stay zero for add-json.
type addFlags struct {
	scope, transport, alias, clientID string
	env, headers                      []string
	callbackPort                      int
	replace, noConnect, noAsk, asJSON bool
	wait                              time.Duration
	install                           registry.Flags
}

// addArgs holds the words that add was given besides flags. Exactly one of command, url and ref is set: ref names a server of a
// registry.
type addArgs struct {
	name, url, ref string
	command        []string
}

// NewAdd returns the command "add", which runs addServer. Its positional arguments take three forms, which parse tells apart.
func NewAdd(o *cli.Options) *cobra.Command {
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
		// Args reads the words as well, because only here does cobra let a command refuse them with a usage error before it
		// runs.
		Args: func(cmd *cobra.Command, args []string) error { return a.parse(cmd, args, f.transport) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if help, _ := cmd.Flags().GetBool("help"); help { // cobra sees only a --help in front of the name
				return cmd.Help()
			}
			return addServer(o, cmd, a, f)
		},
	}
	flags := cmd.Flags()
	// Flags stop at the name: what follows a command belongs to it, and "-y" of npx must not be read as ours.
	flags.SetInterspersed(false)
	f.addSharedTo(cmd)
	flags.StringVarP(&f.transport, "transport", "t", "", "how it is reached: `stdio`, http, sse or ws (default: by what is given)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set a variable for a program: `KEY=VALUE`; KEY alone asks for the value (repeatable)")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "send a header to a remote server: `'NAME: VALUE'` (repeatable)")
	flags.StringVar(&f.clientID, "client-id", "", "sign in as this OAuth `client`")
	flags.IntVar(&f.callbackPort, "callback-port", 0, "wait for the browser on this `port` when signing in")
	flags.StringVar(&f.alias, "as", "", "call a server of the registry `NAME`")
	f.install.AddTo(flags)
	_ = cmd.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions([]string{"stdio", "http", "sse", "ws"}, // this flag exists
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// addSharedTo adds the flags that add and add-json share.
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

// assignmentPattern matches the beginning of NAME=VALUE. It is compiled at first use, because few commands need it and each
// pattern would delay the start of all.
var assignmentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`) })

// schemePattern matches the beginning of a URL; by it add tells a URL from a command.
var schemePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`) })

// parse reads the words that stand after the flags and fills a. More flags may follow the name and a URL; what follows a
// command is the command's own. Its errors quote no value that may be a secret.
func (a *addArgs) parse(cmd *cobra.Command, args []string, transport string) error {
	fs := cmd.Flags()
	// more parses further flags out of words, unless "--" ended the flags.
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
		return exit.UsageError(cmd, "what is to be added? Write mcpvisor add NAME COMMAND…, mcpvisor add NAME URL, or mcpvisor add "+
			"and the name of a server of the registry")
	}
	rest, err := more(args[1:])
	if err != nil {
		return err
	}
	// --transport may have followed the name, after the caller read its value.
	if f := fs.Lookup("transport"); f != nil {
		transport = f.Value.String()
	}
	a.name = args[0]
	switch {
	case fs.Changed("env") && assignmentPattern().MatchString(a.name): // the name is not quoted: the value in it may be a secret
		return exit.UsageError(cmd, "--env takes one variable; write it again before the next one: --env A=1 --env B=2 NAME COMMAND…")
	case len(rest) > 0 && assignmentPattern().MatchString(rest[0]):
		return exit.UsageError(cmd, "a variable stands where the command belongs; write each with its own --env: mcpvisor add NAME --env A=1 "+
			"--env B=2 COMMAND…")
	case len(rest) == 0 && schemePattern().MatchString(a.name):
		return exit.UsageError(cmd, "give the server a name: mcpvisor add NAME URL")
	case len(rest) == 0 && transport != "":
		return exit.UsageError(cmd, "what is %q? Write the command or the URL after the name", messages.Line(a.name, 80))
	case len(rest) == 0:
		a.name, a.ref = "", args[0]
	case schemePattern().MatchString(rest[0]), transport != "" && transport != string(messages.Stdio):
		a.url = rest[0]
		if rest, err = more(rest[1:]); err != nil {
			return err
		}
		if len(rest) > 0 { // what follows is not quoted: it may be a secret
			return exit.UsageError(cmd, "something follows the URL that is no flag; a header is --header 'NAME: VALUE'")
		}
	default:
		a.command = rest
	}
	return nil
}

// strayFlag returns a flag of ours that stands among the arguments of a command, where it goes to the command; "" if there is
// none, or if "--" shows that the person meant it so.
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

// addServer writes the server that the words and flags describe into the file of the scope, connects it and prints its tools.
// The name is checked before questions are asked, so that answers are not typed in vain; a registry name is only known later.
func addServer(o *cli.Options, cmd *cobra.Command, a addArgs, f addFlags) error {
	scope, err := readScope(cmd, f.scope)
	if err != nil {
		return err
	}
	w, err := openEntryWriter(o, cmd, scope, f)
	if err != nil {
		return err
	}
	if a.ref == "" {
		if err := w.checkNameFree(a.name); err != nil {
			return err
		}
	}
	if word := a.strayFlag(cmd); word != "" {
		o.PrintRemark("%s stands after the command and is given to it; flags of mcpvisor stand before NAME", word)
	}
	spec, err := w.specOf(&a)
	if err != nil {
		return err
	}
	if spec, err = w.askUnset(a.name, spec); err != nil {
		return err
	}
	return w.writeEntry(a.name, spec, approve.EntryText(spec))
}

// NewAddJSON returns the command "add-json", which runs addJSON: for entries that other programs print or document as JSON.
func NewAddJSON(o *cli.Options) *cobra.Command {
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
				return exit.UsageError(cmd, `write mcpvisor add-json NAME '{"command": "…"}'`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return addJSON(o, cmd, args[0], args[1], f) },
	}
	f.addSharedTo(cmd)
	return cmd
}

// addJSON writes an entry that was given as JSON. It writes the person's own text, not the spec that was parsed from it, so
// that keys stay as they were typed.
func addJSON(o *cli.Options, cmd *cobra.Command, name, text string, f addFlags) error {
	scope, err := readScope(cmd, f.scope)
	if err != nil {
		return err
	}
	w, err := openEntryWriter(o, cmd, scope, f)
	if err != nil {
		return err
	}
	if err := w.checkNameFree(name); err != nil {
		return err
	}
	entry, err := entryJSON(text, o.In)
	if err != nil {
		return exit.With(exit.Usage, fmt.Sprintf("add-json: %v", err))
	}
	spec, err := specOfJSON(name, entry)
	if err != nil {
		return err
	}
	return w.writeEntry(name, spec, entry)
}
