package install_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func TestSearchPages(t *testing.T) {
	seeds.Shows(t, "004.f.registry")
	f := &fakeRegistry{}
	for i := range 25 {
		f.records = append(f.records, npm(fmt.Sprintf("io.github.o/weather-%02d", i), "1.0.0"))
	}
	f.records = append(f.records, npm("io.github.o/weather-03", "1.1.0"), npm("io.github.o/other", "1"))
	r, _ := serve(t, f)
	var got []string
	q := install.Query{Word: "Weather", Limit: 10}
	for pages := 1; ; pages++ {
		p, err := r.Search(t.Context(), q)
		if err != nil || pages > 3 {
			t.Fatal(pages, err)
		}
		for _, e := range p.Entries {
			got = append(got, e.Name+" "+e.Version)
		}
		if p.Next == "" {
			break
		}
		q.Cursor = p.Next
	}
	if len(got) != 25 || got[3] != "io.github.o/weather-03 1.1.0" || got[24] != "io.github.o/weather-24 1.0.0" {
		t.Errorf("%q", got)
	}
}

// TestFind by full and by short names, with and without a version.
func TestFind(t *testing.T) {
	seeds.Shows(t, "004.f.registry")
	deleted := npm("io.github.o/gone", "1")
	deleted.status, deleted.message = "deleted", "it was malware"
	f := &fakeRegistry{records: []record{npm("io.github.o/weather", "1.0.0"), npm("io.github.o/weather", "1.10.0+b1"),
		npm("com.example/github", "1"), npm("io.github.github/github-mcp-server", "2"), deleted}}
	r, _ := serve(t, f)
	for name, want := range map[string]string{
		"io.github.o/weather": "1.10.0+b1", "weather": "1.10.0+b1", "weather@1.0.0": "1.0.0", "io.github.o/weather@1.10.0+b1": "1.10.0+b1",
	} {
		if e, err := r.Find(t.Context(), name); err != nil || e.Version != want || e.Name != "io.github.o/weather" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	host := r.Host()
	for name, want := range map[string]string{
		"github":                "several servers are called github: com.example/github, io.github.github/github-mcp-server; write the whole name",
		"io.github.o/weather@9": "the registry " + host + " has no io.github.o/weather 9; mcpvisor search finds servers by a part of their names",
		"io.github.o/nobody":    "the registry " + host + " has no io.github.o/nobody; mcpvisor search finds servers by a part of their names",
		"nobody":                "the registry has no server called nobody; mcpvisor search finds servers by a part of their names",
		"eat":                   "no server is called eat; near it: io.github.o/weather; write the whole name",
		"io.github.o/gone":      "io.github.o/gone 1 was deleted from the registry " + host + ": it was malware",
	} {
		e, err := r.Find(t.Context(), name)
		if !errors.Is(err, plan.ErrName) || !errors.Is(err, messages.ErrInvalid) || err.Error() != want {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := r.Find(t.Context(), "ab"); err == nil || !strings.Contains(err.Error(), "at least 3 characters") {
		t.Errorf("a word that is too short: %v", err)
	}
}

// TestADeprecatedServerSaysSo, first of all notes.
func TestADeprecatedServerSaysSo(t *testing.T) {
	old := npm("io.github.o/old", "1")
	old.status, old.message = "deprecated", "use io.github.o/new"
	r, _ := serve(t, &fakeRegistry{records: []record{old}})
	e, err := r.Find(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	made, err := r.Prepare(t.Context(), e, install.Request{})
	if err != nil || made.Name != "old" || made.Spec.Command != "npx" || len(made.Notes) != 1 ||
		made.Notes[0] != "its publisher has marked it as deprecated: use io.github.o/new" {
		t.Errorf("%+v, %v", made, err)
	}
}

// TestAnswersThatNoRegistryGives: each ends with a class and a sentence, once.
func TestAnswersThatNoRegistryGives(t *testing.T) {
	evil := npm("io.github.o/x", "1")
	evil.document = strings.Replace(evil.document, "d of", `\u001b[2J\u202e`, 1)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		class  messages.Class
		text   string
	}{
		"a page of a website": {text(200, "<html>"), messages.ClassProtocol, "its answer is no page of servers"},
		"another API":         {text(200, `{"items":[]}`), messages.ClassProtocol, "its answer is no page of servers"},
		"a list":              {text(200, `[]`), messages.ClassProtocol, "its answer is no page of servers"},
		"null":                {text(200, `null`), messages.ClassProtocol, "its answer is no page of servers"},
		"too much": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"servers":[`+strings.Repeat(" ", 5<<20)+`]}`)
		}, messages.ClassProtocol, "larger than 4 MiB"},
		"credentials":   {text(401, `{}`), messages.ClassUnauthorized, "wants credentials; set MCPVISOR_REGISTRY_TOKEN"},
		"forbidden":     {text(403, `{"detail":"not for \u001b[31myou"}`), messages.ClassForbidden, "forbids it: not for"},
		"not there":     {text(404, `{}`), messages.ClassInvalid, "has no such server or version"},
		"a teapot":      {text(418, `short`), messages.ClassProtocol, "answers 418"},
		"asked to wait": {text(429, `{}`, "Retry-After", "3600"), messages.ClassThrottled, "is asked too often; try again in 1h0m0s"},
		"elsewhere":     {text(302, ``, "Location", "https://evil.example/"), messages.ClassDenied, "sends us on to evil.example, another origin"},
		"in circles":    {text(302, ``, "Location", "/v0.1/servers"), messages.ClassDenied, "redirects too often"},
		"the same elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		}, messages.ClassDenied, "another origin"},
	} {
		requests := 0
		r, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { requests++; c.answer(w, q) }))
		_, err := r.Search(t.Context(), install.Query{Word: "x"})
		var e *messages.Error
		if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
		if requests != 1 && name != "in circles" {
			t.Errorf("%s: asked %d times", name, requests)
		}
	}
	r, _ := serve(t, &fakeRegistry{records: []record{evil, {document: `{"name":"no-slash"}`}}})
	p, err := r.Search(t.Context(), install.Query{})
	if err != nil || len(p.Entries) != 1 || p.Skipped != 1 {
		t.Errorf("one that cannot be read among others: %+v, %v", p, err)
	}
}

func text(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// TestAServerIsTheOneThatWasAskedFor: an answer about another name or version is refused.
func TestAServerIsTheOneThatWasAskedFor(t *testing.T) {
	f := &fakeRegistry{records: []record{npm("io.github.evil/x", "1")}}
	r, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { answer(w, f.entryJSON(0)) }))
	for _, name := range []string{"io.github.o/x", "io.github.evil/x@2"} {
		if e, err := r.Find(t.Context(), name); messages.ClassOf(err) != messages.ClassProtocol {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := r.Find(t.Context(), "io.github.evil/x@1"); err != nil {
		t.Error(err)
	}
}

// virtual opens a registry in a bubble.
func virtual(t *testing.T, d deliver) *install.Registry {
	t.Helper()
	r, err := install.New(install.Options{Base: "https://registry.example", HTTP: d, Token: "canary"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWhatMayHelpIsTriedAgain, three times in all, after what the registry asks for or after delays that grow.
func TestWhatMayHelpIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		answer   func(n int, r *http.Request) (*http.Response, error)
		requests int
		least    time.Duration
		most     time.Duration
		class    messages.Class
	}{
		{"503 twice", func(n int, r *http.Request) (*http.Response, error) {
			if n < 3 {
				return response(r, 503, ""), nil
			}
			return response(r, 200, page), nil
		}, 3, 1500 * time.Millisecond, 3 * time.Second, ""},
		{"429 with a time", func(n int, r *http.Request) (*http.Response, error) {
			if n < 2 {
				return response(r, 429, "", "Retry-After", "20"), nil
			}
			return response(r, 200, page), nil
		}, 2, 20 * time.Second, 20 * time.Second, ""},
		{"500 for ever", func(_ int, r *http.Request) (*http.Response, error) { return response(r, 500, ""), nil },
			3, 1500 * time.Millisecond, 3 * time.Second, messages.ClassNetwork},
		{"silence", func(_ int, r *http.Request) (*http.Response, error) { return dropped(r) },
			3, 46 * time.Second, 49 * time.Second, messages.ClassTimeout},
		{"a refused connection", func(int, *http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
			3, 1500 * time.Millisecond, 3 * time.Second, messages.ClassNetwork},
		{"400", func(_ int, r *http.Request) (*http.Response, error) { return response(r, 400, `{"detail":"no"}`), nil },
			1, 0, 0, messages.ClassInvalid},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			r := virtual(t, func(q *http.Request) (*http.Response, error) { requests++; return c.answer(requests, q) })
			start := time.Now()
			_, err := r.Search(t.Context(), install.Query{})
			took := time.Since(start)
			if requests != c.requests || took < c.least || took > c.most || messages.ClassOf(err) != c.class {
				t.Errorf("%s: asked %d times in %v: %v", c.name, requests, took, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

// TestACancelledSearchEndsAtOnce, also in the middle of a wait.
func TestACancelledSearchEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := virtual(t, func(q *http.Request) (*http.Response, error) { return response(q, 503, "", "Retry-After", "30"), nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := r.Search(ctx, install.Query{})
		if took := time.Since(start); took != time.Second || err == nil {
			t.Errorf("%v: %v", took, err)
		}
	})
}

// TestTheTokenGoesToTheRegistryOnly: not to where bundles are, and not along a redirect.
func TestTheTokenGoesToTheRegistryOnly(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer other.Close()
	f := &fakeRegistry{records: []record{{document: `{"name":"a/b","version":"1","packages":[{"registryType":"mcpb","identifier":"` + other.URL +
		`/x.mcpb","fileSha256":"` + strings.Repeat("0", 64) + `","transport":{"type":"stdio"}}]}`}}}
	r, _ := serve(t, f, func(o *install.Options) { o.Token = "canary" })
	e, err := r.Find(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Prepare(t.Context(), e, install.Request{}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	if got := f.requests[0].Header.Get("Authorization"); got != "Bearer canary" {
		t.Errorf("the registry got %q", got)
	}
	if len(elsewhere) != 1 || elsewhere[0] != "" {
		t.Errorf("another host got %q", elsewhere)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, base := range []string{"nonsense", "ftp://host", "http://registry.example", "https://user:pass@host", "https://host/?x=1", "https://", ":"} {
		if _, err := install.New(install.Options{Base: base}); !errors.Is(err, messages.ErrInvalid) || strings.Contains(err.Error(), "pass@") {
			t.Errorf("%s: %v", base, err)
		}
	}
	for _, base := range []string{"", "https://host", "https://host/v0.1/", "https://host/mcp/", "http://127.0.0.1:1", "http://localhost", "http://[::1]:8"} {
		if _, err := install.New(install.Options{Base: base}); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// TestARegistryThatGoesInCirclesIsNotUnique: the pages of a short name are bounded, and what was not seen may be meant.
func TestARegistryThatGoesInCirclesIsNotUnique(t *testing.T) {
	pages := 0
	r, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		pages++
		fmt.Fprintf(w, `{"servers":[{"server":{"name":"a/weather","version":"1"}}],"metadata":{"nextCursor":"%d"}}`, pages%2)
	}))
	if _, err := r.Find(t.Context(), "weather"); !errors.Is(err, plan.ErrName) || pages != 3 {
		t.Errorf("after %d pages: %v", pages, err)
	}
	pages = 0
	r, _ = serve(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		pages++
		fmt.Fprintf(w, `{"servers":[],"metadata":{"nextCursor":"%d"}}`, pages)
	}))
	if _, err := r.Find(t.Context(), "weather"); !errors.Is(err, plan.ErrName) || pages != 20 {
		t.Errorf("after %d pages: %v", pages, err)
	}
}
