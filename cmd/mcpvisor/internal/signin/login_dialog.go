package signin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
)

// signInDialog asks the person to sign in: everything it prints goes to standard error, and answers are lines of standard
// input. The OAuth flow calls its methods, some of them concurrently.
type signInDialog struct {
	options *cli.Options
	// noBrowserReason says why no browser is opened; empty if one is.
	noBrowserReason string

	// mu guards ended, which keeps late messages off the screen once the command is over.
	mu    sync.Mutex
	ended bool
}

// showPage tells the person which page to open. The address stands on a line of its own and unbroken, so that it can be copied.
// Remarks of JudgeURL come before the person acts.
func (c *signInDialog) showPage(request oauth.SignInRequest) {
	line := func(format string, args ...any) { fmt.Fprintf(c.options.Err, format+"\n", args...) }
	host, remarks, ok := ask.JudgeURL(request.URL)
	if host == "" {
		host = "a host that cannot be named"
	}
	line("To sign in to %s, open this page of %s:\n\n%s\n", messages.Line(request.Server, 60), host, messages.Line(request.URL, 0))
	if !ok {
		line("Do not open it unless you know why it is so:")
	}
	for _, remark := range remarks {
		line("Note: %s.", remark)
	}
	if len(request.Scopes) > 0 {
		line("It will ask you to allow: %s", messages.Line(strings.Join(request.Scopes, ", "), 400))
	}
	if c.noBrowserReason == "" {
		line("It is opened in your browser, and afterwards this goes on by itself. If it does not, paste here the address that\n" +
			"the browser ends at, or the code that it shows:")
		return
	}
	// Only the beginning of the redirect address is shown: the rest of the real one holds the code.
	back := request.RedirectURL
	if u, err := url.Parse(back); err == nil {
		back = u.Scheme + "://" + u.Host + "/"
	}
	line("No browser is opened (%s). If yours runs on another machine, it cannot show the last page, whose address begins\n"+
		"with %s: copy that address, or the code that you are shown, and paste it here:", c.noBrowserReason, messages.Line(back, 200))
}

// reportBrowser tells the person about a browser that could not be started, and returns the error.
func (c *signInDialog) reportBrowser(err error) error {
	if err != nil {
		c.printLine("No browser could be opened (%s): open the page yourself.", messages.Line(err.Error(), 120))
	}
	return err
}

// printLine prints a line, unless the sign-in is over.
func (c *signInDialog) printLine(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		fmt.Fprintf(c.options.Err, format+"\n", args...)
	}
}

// muteOutput makes printLine silent: the command has ended, and a late message would stand behind the shell's prompt.
func (c *signInDialog) muteOutput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// readPasted reads the address or code that the person pastes. problem says what was wrong with the previous one.
func (c *signInDialog) readPasted(ctx context.Context, problem string) (string, error) {
	if problem != "" {
		c.printLine("%s. Paste it here:", sentenceStart(problem))
	}
	text, err := c.options.Prompter.Lines.ReadLine(ctx)
	return strings.TrimSpace(text), err
}

// openPage opens the page in the browser, unless its address is one that may mislead.
func (c *signInDialog) openPage(_ context.Context, page string) error {
	if _, _, ok := ask.JudgeURL(page); !ok {
		return c.reportBrowser(errors.New("its address is not well-formed"))
	}
	return c.reportBrowser(c.options.Prompter.OpenPage(page))
}

// sentenceStart returns a text as the beginning of a sentence: with a capital letter, cut, and without a full stop.
func sentenceStart(s string) string {
	return strings.TrimSuffix(terminal.AsSentence(messages.Line(s, 200)), ".")
}

// noBrowser says why no browser is opened; "" if one is. Over SSH the browser would open on the wrong machine.
func noBrowser(unwanted bool) string {
	ssh := os.Getenv("SSH_CONNECTION") != "" || os.Getenv("SSH_TTY") != ""
	switch {
	case unwanted:
		return "--no-browser"
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" || os.Getenv("BROWSER") != "":
		// BROWSER is set by editors that work on another machine and bring pages back from there.
	case ssh:
		return "this is a session over SSH"
	case runtime.GOOS != "windows" && runtime.GOOS != "darwin":
		return "there is no display"
	}
	return ""
}
