package score_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/score"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapters/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapters/mcpgo"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapters/mcpvisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// clients are what this test binary becomes when it is started as an adapter.
var clients = map[string]func() (adapter.Client, error){
	"liar":     func() (adapter.Client, error) { return liar{}, nil },
	"mcp-go":   func() (adapter.Client, error) { return mcpgo.New(), nil },
	"go-sdk":   func() (adapter.Client, error) { return gosdk.New(), nil },
	"mcpvisor": func() (adapter.Client, error) { return mcpvisor.New(nil) },
}

func TestMain(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "adapter" {
		client, err := clients[os.Args[2]]()
		if err == nil {
			err = adapter.Serve(os.Stdin, os.Stdout, client)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// liar does nothing, and says that all is well.
type liar struct{}

func (liar) About() string                                         { return "liar" }
func (liar) Connect(context.Context, string, adapter.Server) error { return nil }
func (liar) Tools(context.Context, string) ([]string, error)       { return []string{"echo"}, nil }
func (liar) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
}

func (liar) Status(context.Context) map[string]string {
	all := map[string]string{}
	for i := range 100 {
		all[fmt.Sprintf("s%d", i)], all[fmt.Sprintf("w%d", i)] = "connected", "connected"
	}
	return all
}
func (liar) Close(context.Context, string) error { return nil }
func (liar) Quit(context.Context)                {}

func play(t *testing.T, client, only string, parallel int) score.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := score.Options{Name: client, Adapter: []string{self, "adapter", client}, Parallel: parallel}
	if only != "" {
		o.Only = regexp.MustCompile(only)
	}
	r, err := score.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cases) == 0 {
		t.Fatalf("no case matches %s", only)
	}
	return r
}

// patient are the cases that give a client half a minute and more, which one that does nothing needs to the end.
var patient = []string{"a restarted server", "a half-open connection"}

// A client's word is not enough anywhere: who only says that all is well loses points in every case.
func TestALiarLosesEveryCase(t *testing.T) {
	t.Parallel() // all of it is waiting
	var names []string
	for _, c := range score.Cases() {
		if os.Getenv("NIGHTLY") != "" || !slices.Contains(patient, c.Name) {
			names = append(names, regexp.QuoteMeta(c.Name))
		}
	}
	r := play(t, "liar", "^("+strings.Join(names, "|")+")$", 64)
	if len(r.Cases) != len(names) || len(r.Cases) < 25 {
		t.Errorf("%d cases were played", len(r.Cases))
	}
	for _, c := range r.Cases {
		if c.Got() == c.MaxPoints() {
			t.Errorf("case %d (%s) is won by a client that does nothing: %v", c.Number, c.Name, c.Points)
		}
	}
}

// Each of these can be won, over stdio and over HTTP, in both eras.
func TestTheManagerWinsWhatItClaims(t *testing.T) {
	t.Parallel()
	only := "^(an ordinary.*|a silent server|noise on.*|a crash|a call without.*|death in the.*|secrets.*|bad schemas|a lost session|" +
		"another origin|a launcher.*)$"
	if os.Getenv("NIGHTLY") != "" {
		only = ""
	}
	for _, c := range play(t, "mcpvisor", only, 4).Cases {
		for _, why := range c.Lost() {
			t.Errorf("case %d (%s): %s", c.Number, c.Name, why)
		}
	}
}

// The libraries are driven rightly: on an ordinary day they lose nothing.
func TestTheLibrariesWinAnOrdinaryDay(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"mcp-go", "go-sdk"} {
		t.Run(client, func(t *testing.T) {
			for _, c := range play(t, client, "^(an ordinary.*|a lost session|a crash|failures of tools)$", 4).Cases {
				for _, why := range c.Lost() {
					t.Errorf("case %d (%s): %s", c.Number, c.Name, why)
				}
			}
		})
	}
}

// TestCasesPlayFaultsOfTheCatalogue: a case names faults that there are, and the field reports that they come from.
func TestCasesPlayFaultsOfTheCatalogue(t *testing.T) {
	for _, c := range score.Cases() {
		for _, name := range c.Plays {
			k, ok := fault.Lookup(name)
			if !ok || !slices.ContainsFunc(k.Reports, func(id string) bool { return slices.Contains(c.Faults, id) }) {
				t.Errorf("%s plays %s, which is of the reports %v and not of %v", c.Name, name, k.Reports, c.Faults)
			}
		}
	}
}

// TestCasesAreChosenByNameNumberAndFault: what matches none is an error before anything is played, and not a run without cases.
func TestCasesAreChosenByNameNumberAndFault(t *testing.T) {
	for pattern, want := range map[string]string{
		"^half-line$": "half an answer", "^half an answer$": "half an answer", "^half_an_answer$": "half an answer", "^1$": "an ordinary day",
	} {
		chosen, err := score.Choose(regexp.MustCompile(pattern))
		if err != nil || len(chosen) != 1 || chosen[0].Name != want {
			t.Errorf("%s: %v, %v", pattern, chosen, err)
		}
	}
	if all, err := score.Choose(nil); err != nil || len(all) != len(score.Cases()) {
		t.Errorf("%d of %d: %v", len(all), len(score.Cases()), err)
	}
	_, err := score.Run(t.Context(), score.Options{Adapter: []string{"/no/such/adapter"}, Only: regexp.MustCompile("^(crahs|xyz)$")})
	if !errors.Is(err, score.ErrNoCase) || !strings.Contains(err.Error(), `did you mean "crash"?`) {
		t.Error(err)
	}
}

func TestAnAdapterThatDoesNotWorkIsSaidSo(t *testing.T) {
	for _, argv := range [][]string{nil, {"/no/such/adapter"}, {"/bin/cat", "/dev/null"}} {
		if _, err := score.Run(t.Context(), score.Options{Adapter: argv}); !errors.Is(err, score.ErrNoAdapter) {
			t.Errorf("%v: %v", argv, err)
		}
	}
}

// TestAClientBehindALauncherIsKilled: where a launcher like npx has started the client, the client itself is killed, and not
// its launcher alone. Its servers must not keep the run from going on.
func TestAClientBehindALauncherIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := score.Run(t.Context(), score.Options{
		Adapter: []string{"/bin/sh", "-c", `"$@"; exit $?`, "launcher", self, "adapter", "go-sdk"}, Only: regexp.MustCompile("^the client is killed$"),
	})
	if err != nil || len(r.Cases) != 1 {
		t.Fatal(err, r.Cases)
	}
	for _, p := range r.Cases[0].Points {
		if p.Must == "the good server ends" && !p.Got {
			t.Errorf("the good server did not see the end of its client: %s", p.Seen)
		}
	}
}

// An interrupted run does not wait for the client.
func TestTheEndOfTheContextEndsACase(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := score.Run(ctx, score.Options{
		Adapter: []string{self, "adapter", "mcpvisor"}, Only: regexp.MustCompile("^(an ordinary day|a silent server)$"), Parallel: 1,
		Progress: func(score.CaseResult) { cancel() },
	})
	if !errors.Is(err, context.Canceled) || len(r.Cases) == 0 {
		t.Errorf("%v, %d cases", err, len(r.Cases))
	}
}

func TestTheTableNamesEveryLostPoint(t *testing.T) {
	r := score.Result{Name: "some|client", About: "some 1.0", Cases: []score.CaseResult{
		{Number: 1, Name: "an ordinary day", Points: []score.Point{{Must: "it connects", Got: true}, {Must: "it is closed", Seen: "it hangs"}}},
	}}
	text := score.Markdown([]score.Result{r}, "make it")
	for _, want := range []string{`some\|client`, "1/2", "it is closed: it hangs", "Made by `make it`", "a bare client library"} {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			t.Errorf("%q is missing in\n%.2000s", want, text)
		}
	}
	if second := score.Markdown([]score.Result{r}, "make it"); second != text {
		t.Error("the same results give another text")
	}
}

func ExampleRun() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	result, err := score.Run(context.Background(), score.Options{
		Adapter: []string{self, "adapter", "mcpvisor"}, Only: regexp.MustCompile("^an ordinary day$"),
	})
	if err != nil {
		panic(err)
	}
	for _, c := range result.Cases {
		fmt.Println(c.Number, c.Name, c.Got() == c.MaxPoints())
	}
	// Output: 1 an ordinary day true
}

// Two versions of one client are told apart in the head of the table.
func TestClientsOfOneNameAreToldApart(t *testing.T) {
	results := []score.Result{
		{Name: "SDK", About: "SDK 1; no options"}, {Name: "SDK", About: "SDK 2, with a probe"}, {Name: "SDK", About: "SDK 2"},
		{Name: "other", About: "other 7"}, {Name: "SDK", Failed: "the adapter does not work"},
	}
	score.NameApart(results)
	names := ""
	for _, r := range results {
		names += r.Name + ", "
	}
	if names != "SDK 1, SDK 2, SDK 2 (2), other, SDK, " {
		t.Error(names)
	}
}
