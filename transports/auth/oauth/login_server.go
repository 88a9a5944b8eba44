package oauth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// loginServer is the redirectHandler of Login: it listens on this machine, or reads pasted text, or both. One sign-in uses it.
type loginServer struct {
	prompt        Prompt
	configuredURL string // Config.RedirectURL
	port          int    // Config.CallbackPort

	// listener is nil until redirectURL has opened it, and with Prompt.NoListen. path is the path that counts on it.
	listener net.Listener
	path     string
}

// callbackPath is the path of redirect URLs that this program makes.
const callbackPath = "/callback"

// redirectURL opens the listener, if there is to be one, on the configured port, else on that of the registration if it is free,
// else on any.
//
// RFC 8252, 7.3: "The authorization server MUST allow any port to be specified at the time of the request for loopback IP
// redirect URIs"; for one that does not, chooseClient makes another registration.
func (d *loginServer) redirectURL(registered string) (string, error) {
	to := &url.URL{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(d.port), Path: callbackPath}
	if d.configuredURL != "" {
		u, err := url.Parse(d.configuredURL)
		if err != nil || u.Scheme != "http" || !addresses.ThisMachine(u.Hostname()) {
			if d.prompt.Paste == nil {
				return "", &transports.Error{Class: messages.ClassConfig,
					Text: "the redirect URL is on another machine, where nobody can listen from here",
					Fix:  "paste the address that the browser is sent to"}
			}
			return d.configuredURL, nil
		}
		to = u
	}
	d.path = to.Path
	if d.prompt.NoListen {
		switch {
		case d.configuredURL != "" || d.port != 0:
			return to.String(), nil
		case registered != "":
			return registered, nil
		}
		return staticRedirect, nil
	}
	// The port of the registration first: with another one, servers that compare ports need another registration.
	var at []string
	if old, err := url.Parse(registered); err == nil && d.configuredURL == "" && d.port == 0 && old.Port() != "" {
		at = append(at, old.Port())
	}
	port := to.Port()
	if port == "" {
		port = "80"
	}
	var failed error
	for _, port := range append(at, port) {
		d.listener, failed = (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:"+port)
		if failed == nil {
			break
		}
	}
	if failed != nil {
		return "", &transports.Error{Class: messages.ClassConfig, Err: failed,
			Text: "nobody can listen for the sign-in's answer on port " + port + " of 127.0.0.1",
			Fix:  "choose another callback port, or sign in without a browser"}
	}
	// The registered text counts, also where it says localhost and the listener has 127.0.0.1.
	if d.configuredURL != "" && to.Port() != "0" {
		return d.configuredURL, nil
	}
	_, port, _ = net.SplitHostPort(d.listener.Addr().String())
	to.Host = net.JoinHostPort(to.Hostname(), port)
	return to.String(), nil
}

func (d *loginServer) close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
}

// awaitAnswer implements redirectHandler. The listener and the paste prompt run at the same time; it fails when all that there
// are have failed.
func (d *loginServer) awaitAnswer(ctx context.Context, ask SignInRequest) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Both channels have room for every sender, so that none of them blocks after this function has returned.
	answers := make(chan string, 2)
	failures := make(chan error, 2)
	waiting := 0
	if d.listener != nil {
		// The listener runs before the browser opens, so that no answer can come too early.
		stop := d.serveCallback(ask, answers)
		defer stop()
		waiting++
	}
	if d.prompt.Show != nil {
		d.prompt.Show(ask)
	}
	if d.prompt.Open != nil {
		// With Show the person has the address and can open it by hand.
		if err := d.prompt.Open(ctx, ask.URL); err != nil && d.prompt.Show == nil {
			return "", &transports.Error{Class: messages.ClassUnauthorized, Text: "no browser could be opened",
				Fix: "sign in without a browser"}
		}
	}
	if d.prompt.Paste != nil {
		waiting++
		go func() {
			defer func() {
				if recover() != nil {
					failures <- errors.New("the prompt failed")
				}
			}()
			answer, err := d.readPasted(ctx, ask)
			if err != nil {
				failures <- err
				return
			}
			answers <- answer
		}()
	}
	for {
		select {
		case answer := <-answers:
			return answer, nil
		// The other way may still bring an answer.
		case err := <-failures:
			if waiting--; waiting == 0 {
				return "", err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// maxPastes bounds the attempts of a person to paste an answer.
const maxPastes = 5

// readPasted reads until a text is usable: an address with this sign-in's state, or something that may be a code.
func (d *loginServer) readPasted(ctx context.Context, ask SignInRequest) (string, error) {
	problem := ""
	for range maxPastes {
		answer, err := d.prompt.Paste(ctx, problem)
		if err != nil {
			return "", err
		}
		// Only the state is checked here; codeFromResponse checks the rest.
		q, full := responseQuery(answer)
		switch {
		case answer == "":
			problem = "nothing was pasted"
		case full && q.Get("state") != ask.state:
			problem = "that is the address of another sign-in; paste the one that the browser shows at the end"
		default:
			return answer, nil
		}
	}
	return "", errors.New("nothing usable was pasted")
}

// serveCallback serves the redirect URL until stop is called. Only a GET of its path with this sign-in's state counts as the
// answer, and only the first one; any other request changes nothing. The page repeats nothing of the request.
func (d *loginServer) serveCallback(ask SignInRequest, answers chan<- string) (stop func()) {
	unanswered := make(chan struct{}, 1)
	// The channel has one element until the first answer takes it.
	unanswered <- struct{}{}
	mux := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer") // the address holds the code
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		// A page of another site can send requests to this port under a name of its own; they have that name as their host.
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		switch {
		case !addresses.ThisMachine(host): // a name that its owner has pointed at this machine (DNS rebinding)
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		case r.URL.Path != d.path:
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case r.URL.Query().Get("state") != ask.state:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(answerPage("This is not the sign-in that mcpvisor waits for.")))
			return
		}
		select {
		case <-unanswered:
			text := "mcpvisor has the answer and goes on in the terminal."
			if r.URL.Query().Has("error") {
				text = "The sign-in was not completed. mcpvisor says more in the terminal."
			}
			_, _ = w.Write([]byte(answerPage(text)))
			answers <- "http://127.0.0.1" + r.URL.RequestURI()
		default:
			_, _ = w.Write([]byte(answerPage("mcpvisor has the answer already.")))
		}
	})
	// The bounds keep a stranger's connection on this machine from holding the sign-in up.
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxHeaderBytes: 64 << 10,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(d.listener)
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the page may still be being written
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-ended
	}
}

// answerPage returns the page that the person sees in the browser.
func answerPage(text string) string {
	return `<!doctype html><html lang="en"><meta charset="utf-8"><title>mcpvisor</title>` +
		`<body style="font:1.1rem system-ui;margin:4rem auto;max-width:32rem"><p>` + text +
		`</p><p>You may close this window.</p></body></html>`
}
