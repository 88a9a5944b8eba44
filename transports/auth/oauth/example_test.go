package oauth_test

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// A server that wants a sign-in: the transport gets the Authorizer, and a command signs in when it has become
// needs-auth.
func ExampleNew() {
	a, err := oauth.New(oauth.Config{
		Server: "github", URL: "https://api.example.com/mcp",
		Store: auth.NewMemory(), Locks: auth.NewLocks(""), // a real program: auth.Open, and locks in a directory
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = web.NewHTTP(web.Config{URL: "https://api.example.com/mcp", Auth: a})
	status, err := a.Status(context.Background())
	fmt.Println(status.SignedIn, status.Where, err)
	// Output: false memory <nil>
}

// A sign-in with a browser on this machine, and the address on the terminal for those who have none.
func ExampleAuthorizer_Login() {
	a, err := oauth.New(oauth.Config{
		Server: "github", URL: "https://api.example.com/mcp", Store: auth.NewMemory(), Locks: auth.NewLocks(""),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	signIn := func(ctx context.Context) error {
		status, err := a.Login(ctx, oauth.Prompt{
			Show: func(ask oauth.SignInRequest) { fmt.Printf("%s asks you to sign in at\n%s\n", ask.Server, ask.URL) },
			Open: func(ctx context.Context, url string) error {
				return exec.CommandContext(ctx, "xdg-open", url).Run() // the URL holds no secret: others may see the argument
			},
			Timeout: 2 * time.Minute,
		})
		if err == nil {
			fmt.Println("signed in at", status.Issuer, "for", status.Scopes)
		}
		return err
	}
	_ = signIn // not called here: it needs a person
	// Output:
}
