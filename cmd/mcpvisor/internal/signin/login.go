package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
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
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// LoginFlags holds the flags of login. add uses them too, with only a timeout.
type LoginFlags struct {
	// noBrowser shows the address alone; json prints a loginReport at the end, and questions go to standard error.
	noBrowser, json bool
	// scopes are asked for besides those that the server names.
	scopes []string
	// Timeout bounds the time that the person has for signing in.
	Timeout time.Duration
	// issuer is the URL of the only authorization server that may be used; empty for the one that the server names.
	issuer string
	// port is the loopback port to which the browser comes back; 0 for auth.callbackPort of the entry, or any.
	port int
}

// NewLogin returns the command "login", which runs SignIn. add runs SignIn as well, for a server that asks for a sign-in.
func NewLogin(o *cli.Options) *cobra.Command {
	var f LoginFlags
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Sign in to a server that asks for it",
		Long: `Signs in to a remote server with OAuth and keeps the sign-in, so that nobody is asked again: access is renewed by
itself, by whichever mcpvisor needs it. Opens the page in the browser, and shows its address. At the end the browser comes
back to this machine (127.0.0.1, any free port or --port), or you paste the address that it ends at, or the code that it
shows: whichever is first. Ctrl-C ends it and changes nothing.

Over SSH and without a display no browser is opened. Open the address wherever you like; the last page cannot be shown
there, and its address is what to paste.

A running "mcpvisor up" connects the server by itself. Without one it is connected once, to see that it works.

Where the configuration holds a secret of yours (a clientSecret, a token to exchange) and no issuer, you are shown the
authorization server that the server names before anything is sent there; your yes is remembered. --issuer says beforehand
which one is right.

The browser is started with the page's address as an argument, which other users of this machine may be able to see while it
starts: on a machine that you share, use --no-browser. The address lets nobody into your account; with it somebody could have
this sign-in end at theirs.

The sign-in is kept in the system's keyring, or without one in encrypted files; see --store and "mcpvisor auth status".`,
		Example: `  mcpvisor login github
  mcpvisor login github --scope repo --scope read:org
  mcpvisor login github --no-browser             # over SSH, or in a container
  mcpvisor login github --port 33418             # with ssh -L 33418:127.0.0.1:33418 the browser comes back by itself`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, completeSignIn),
		RunE:              func(cmd *cobra.Command, args []string) error { return SignIn(o, cmd, args[0], f) },
	}
	cmd.Flags().BoolVar(&f.noBrowser, "no-browser", false, "open no browser: only show the address, and take what is pasted")
	cmd.Flags().StringArrayVar(&f.scopes, "scope", nil, "ask for this `scope` as well (repeatable)")
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 5*time.Minute, "how long the sign-in may take")
	cmd.Flags().IntVar(&f.port, "port", 0, "wait for the browser on this `port` of 127.0.0.1 (default: auth.callbackPort, or any)")
	cmd.Flags().StringVar(&f.issuer, "issuer", "", "sign in at this authorization server (a `URL`) and at no other")
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print a JSON object at the end; what you are asked is on standard error")
	return cmd
}

// loginReport is the JSON object that login --json prints.
type loginReport struct {
	Server string `json:"server"`
	// Needed is false for a server that needs no sign-in, or whose credentials are configured.
	Needed bool                   `json:"needed"`
	Auth   *supervisor.AuthStatus `json:"auth,omitempty"`
	Status messages.Phase         `json:"status,omitempty"`
	Tools  int                    `json:"tools"`
	Error  string                 `json:"error,omitempty"`
}

// SignIn signs the person in to a server: it finds out what the server asks for, runs the OAuth dialog in this process, and
// waits until the server is connected with the new sign-in. A server that needs none is reported and no error.
func SignIn(o *cli.Options, cmd *cobra.Command, server string, f LoginFlags) error {
	switch {
	case f.Timeout <= 0:
		return exit.UsageError(cmd, "--timeout: %s is no time to sign in", f.Timeout)
	case cmd.Flags().Changed("port") && (f.port < 1 || f.port > 65535):
		return exit.UsageError(cmd, "--port: %d is no port; use 1 to 65535", f.port)
	}
	ctx := cmd.Context()
	p, spec, err := Open(ctx, o, "login", server)
	if err != nil {
		return err
	}
	defer p.Close()
	// Flags of this command replace what the entry says, for this sign-in only.
	if f.port != 0 || f.issuer != "" {
		a := supervisor.Auth{Type: messages.AuthOAuth}
		if spec.Auth != nil {
			a = *spec.Auth
		}
		a.CallbackPort, a.Issuer = cmp.Or(f.port, a.CallbackPort), cmp.Or(f.issuer, a.Issuer)
		spec.Auth = &a
		if key, text, fix := config.CheckAuth(&a); text != "" {
			return exit.UsageError(cmd, "%s: %s; %s", key, text, fix)
		}
	}
	if !spec.Kind().Remote() {
		return printLogin(o, f, loginReport{Server: server}, "needs no sign-in: it is no remote server")
	}
	// The sign-in is made in this process, where the person is. A running up has the connection already, and a second one could
	// disturb a server that allows only one; without an up one is made here, to see what the server asks for.
	spec.Disabled = p.Up != nil
	if err := p.StartSignInManager(ctx, server, spec); err != nil {
		return err
	}
	before, err := p.awaitOutcome(ctx, server, time.Duration(spec.ConnectTimeout))
	if err != nil {
		return err
	}
	// A server that connects without a sign-in needs none, unless the person asks for more scopes or has signed in before.
	out := loginReport{Server: server, Needed: true}
	if a, err := p.AuthStatusOf(ctx, server); err != nil {
		return err
	} else if before.Status == messages.Connected && len(f.scopes) == 0 && !slices.Contains(States, a.State) {
		out.Needed, out.Auth, out.Status, out.Tools = false, &a, before.Status, len(before.Tools)
		return printLogin(o, f, out, noSignInReason(a))
	}
	// Any other failure would remain after a sign-in, and is reported at once. A forbidden server may need more scopes.
	if before.Status == messages.Failed && before.Class != messages.ClassForbidden && p.Up == nil {
		e := status.NotConnectedError(before)
		e.Outcome = "" // no call was made
		return exit.With(exit.Failed, e.Error())
	}
	prompt := signInPrompt(ctx, o, f)
	// If the port of the redirect is taken, for example by ssh -L, the person pastes the address.
	prompt.NoListen = prompt.Open == nil && portTaken(spec.Auth)
	prompt.Challenge = before.Challenge
	if err := p.OwnManager.Login(ctx, server, supervisor.LoginOptions{Prompt: prompt}); err != nil {
		if stop := exit.InterruptedError(ctx); stop != nil {
			return stop
		}
		var e *messages.Error
		if !errors.As(err, &e) || e.Op == "login" {
			return loginError(err)
		}
		// The sign-in is stored and only connecting has failed, which reportLogin finds again and reports.
	}
	return p.reportLogin(ctx, f, out, before)
}

// States lists the states in which the person has signed in, even if access has expired.
var States = []supervisor.AuthState{supervisor.AuthSignedIn, supervisor.AuthExpired}

// loginError gives a sign-in that was not completed the exit code 1. A server that is unknown or has no sign-in stays a usage
// error.
func loginError(err error) error {
	if errors.Is(err, messages.ErrInvalid) || errors.Is(err, messages.ErrUnknownServer) {
		return err
	}
	return exit.WithCode(exit.Failed, err)
}

// reportLogin prints who is signed in, waits for the server to connect, and prints whether it did. The sign-in is printed
// first, because it is kept even if the server does not connect.
func (p *signInProject) reportLogin(ctx context.Context, f LoginFlags, out loginReport, before messages.Status) error {
	a, err := p.AuthStatusOf(ctx, out.Server)
	if err != nil {
		return err
	}
	out.Auth = &a
	text := messages.Line(out.Server, 60) + ": signed in" + signInText(a, time.Now())
	if !f.json {
		fmt.Fprintln(p.Options.Out, text)
	}
	st, err := p.awaitConnected(ctx, out.Server, before)
	if err != nil {
		return err
	}
	out.Status, out.Tools = st.Status, len(st.Tools)
	if st.Status == messages.Connected || st.Status == messages.Disabled {
		return printLogin(p.Options, f, out, connectedText(st))
	}
	e := status.NotConnectedError(st)
	e.Outcome = "" // there was no call
	out.Error = e.Error()
	if f.json {
		if err := printLogin(p.Options, f, out, ""); err != nil {
			return err
		}
	}
	return exit.With(exit.Failed, e.Error())
}

// awaitConnected waits until the server has used the sign-in. A running up notices a new sign-in by itself within noticeTime; a
// server that was not waiting for one, or was not noticed, gets a request to reconnect.
func (p *signInProject) awaitConnected(ctx context.Context, server string, before messages.Status) (messages.Status, error) {
	// The wait holds for each of the two parts: noticing the sign-in, and the attempt to connect.
	wait := 30 * time.Second
	// A disabled server stays so: the sign-in is for later.
	if before.Status != messages.Disabled {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		st := before
		for until := time.Now().Add(noticeTime); p.Up != nil && st.Status == messages.NeedsAuth && time.Now().Before(until); {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return st, exit.InterruptedError(ctx)
			}
			all, err := p.Status(within, control.StatusQuery{Servers: []string{server}})
			if err != nil {
				return st, err
			}
			st = all[0]
		}
		if p.Up == nil {
			all, err := p.Status(within, control.StatusQuery{Servers: []string{server}})
			if err != nil {
				return st, err
			}
			st = all[0]
		}
		// The epoch is that of the connection before the sign-in, so that the server has not reconnected yet.
		if st.Epoch == before.Epoch {
			// An error of the server is not returned: awaitOutcome finds its reason in the status.
			if err := p.Reconnect(within, server); err != nil && exit.InterruptedError(ctx) != nil {
				return st, exit.InterruptedError(ctx)
			}
		}
	}
	return p.awaitOutcome(ctx, server, wait)
}

// noticeTime is longer than a running up needs to notice a sign-in: it looks every two seconds.
const noticeTime = 5 * time.Second

// printLogin prints the report with --json, and the text otherwise.
func printLogin(o *cli.Options, f LoginFlags, out loginReport, text string) error {
	if f.json {
		return terminal.PrintJSON(o.Out, out)
	}
	fmt.Fprintln(o.Out, messages.Line(out.Server, 60)+": "+text)
	return nil
}

// connectedText describes the server after the sign-in.
func connectedText(st messages.Status) string {
	if st.Status == messages.Disabled {
		return "disabled; connect it with: mcpvisor enable " + terminal.ShellWord(st.Name)
	}
	text := "connected"
	if i := st.ServerInfo; i != nil {
		text += "  " + strings.TrimSpace(messages.Line(i.Name, 60)+" "+messages.Line(i.Version, 30))
	}
	return text + " · " + terminal.CountOf(len(st.Tools), "tool")
}

// noSignInReason says why there is nothing to sign in to.
func noSignInReason(a supervisor.AuthStatus) string {
	if a.State == supervisor.AuthConfigured || a.State == supervisor.AuthProvided {
		return "needs no sign-in: its credentials come from " + messages.Line(a.Where, 200)
	}
	return "needs no sign-in: it lets everybody in"
}

// portTaken reports whether this process cannot listen on the port to which the browser shall come back.
func portTaken(a *messages.Auth) bool {
	if a == nil || a.CallbackPort == 0 {
		return false
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.CallbackPort)))
	if err == nil {
		_ = l.Close()
	}
	return err != nil
}

// signInPrompt returns the functions by which the OAuth flow asks the person. After the context has ended they print nothing
// more.
func signInPrompt(ctx context.Context, o *cli.Options, f LoginFlags) oauth.Prompt {
	c := &signInDialog{options: o, noBrowserReason: noBrowser(f.noBrowser)}
	// Open stays nil without a browser, and the flow then waits for the paste as well as for the port.
	p := oauth.Prompt{Show: c.showPage, Paste: c.readPasted, Confirm: c.askConfirmation, Timeout: f.Timeout}
	for _, s := range f.scopes {
		p.Scopes = append(p.Scopes, strings.Fields(s)...)
	}
	if c.noBrowserReason == "" {
		p.Open = c.openPage
	}
	context.AfterFunc(ctx, c.muteOutput)
	return p
}
