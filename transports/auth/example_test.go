package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// A token that another program keeps fresh in a file.
func ExampleTokenFile() {
	_ = web.NewHTTP(web.Config{
		URL:  "https://api.example.com/mcp",
		Auth: auth.TokenFile("/var/run/secrets/token"),
	})
}

// A key from the environment, in a header of the server's choice.
func ExampleAPIKey() {
	_ = web.NewHTTP(web.Config{
		URL:  "https://api.example.com/mcp",
		Auth: auth.APIKey("X-API-Key", auth.Env("CUSTOM_API_KEY")),
	})
}

// A key that a password program prints.
func ExampleBearer() {
	_ = auth.Bearer(auth.Command(auth.ShellCommand("pass show mcp/example"), 0))
}

// A command that prints headers as a JSON object.
func ExampleHelper() {
	_ = auth.Helper(auth.HelperConfig{Program: auth.ShellCommand(`echo '{"X-Tenant": "a", "X-Key": "…"}'`)})
}

// A program that has tokens of its own: the server refuses the first one, and the request is sent once more.
func ExampleTokens() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the server got", r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer second" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()

	token := "first"
	conn, err := web.NewHTTP(web.Config{
		URL: server.URL,
		Auth: auth.Tokens(func(_ context.Context, refused string) (string, error) {
			if refused == token {
				token = "second"
			}
			return token, nil
		}),
	}).Dial(context.Background(), silentSink{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	delivery, err := conn.Send(context.Background(), transports.Message{Method: "notifications/x", Body: []byte(`{}`)})
	fmt.Println(delivery, err)
	// Output:
	// the server got Bearer first
	// the server got Bearer second
	// written <nil>
}

// silentSink is a transports.Sink that drops everything.
type silentSink struct{}

func (silentSink) Message([]byte)                 {}
func (silentSink) Oversized(_, _ []byte, _ int64) {}
func (silentSink) Noise([]byte)                   {}
func (silentSink) Down(error)                     {}

// Two processes that find the same token expired: one replaces it, the other adopts.
func ExampleRefresher_Once() {
	ctx := context.Background()
	store := auth.NewMemory()
	refresher := auth.NewRefresher(store, auth.NewLocks("")) // processes share a directory of locks
	_ = store.Put(ctx, "server", []byte("expired"))

	refresh := func(_ context.Context, current []byte) ([]byte, error) {
		fmt.Printf("the authorization server is asked to replace %q\n", current)
		return []byte("fresh"), nil
	}
	seen, _ := store.Get(ctx, "server")
	for range 2 {
		token, err := refresher.Once(ctx, "server", auth.VersionOf(seen), refresh)
		fmt.Printf("%s %v\n", token, err)
	}
	// Output:
	// the authorization server is asked to replace "expired"
	// fresh <nil>
	// fresh <nil>
}

// Nothing is stored under a key: a person must sign in.
func ExampleStore() {
	var store auth.Store = auth.NewMemory()
	_, err := store.Get(context.Background(), "server")
	fmt.Println(errors.Is(err, auth.ErrNotFound))
	// Output: true
}
