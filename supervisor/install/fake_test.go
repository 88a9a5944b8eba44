package install_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// record is one version of a server in a fake registry.
type record struct {
	document, status, message string
}

// fakeRegistry is an MCP registry with API v0.1: pages in the order of names and versions, the latest version of each server, the
// statuses, and the 422 for short words.
type fakeRegistry struct {
	records  []record
	requests []*http.Request
}

type head struct{ Name, Version string }

func (r record) head() (h head) {
	if err := json.Unmarshal([]byte(r.document), &h); err != nil {
		panic(err)
	}
	return h
}

func (f *fakeRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests = append(f.requests, r)
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/v0.1/servers")
	parts := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	switch {
	case !ok || r.Method != http.MethodGet:
		problem(w, http.StatusNotFound, "Endpoint not found")
	case rest == "":
		f.list(w, r.URL.Query())
	case len(parts) == 3 && parts[1] == "versions":
		name, _ := url.PathUnescape(parts[0])
		version, _ := url.PathUnescape(parts[2])
		f.one(w, name, version, r.URL.Query().Get("include_deleted") == "true")
	default:
		problem(w, http.StatusNotFound, "Endpoint not found")
	}
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail})
}

// latest reports whether no later record has the same name: records are in the order of their publication.
func (f *fakeRegistry) latest(i int) bool {
	return !slices.ContainsFunc(f.records[i+1:], func(r record) bool { return r.head().Name == f.records[i].head().Name })
}

func (f *fakeRegistry) entryJSON(i int) map[string]any {
	r := f.records[i]
	status := r.status
	if status == "" {
		status = "active"
	}
	official := map[string]any{"status": status, "isLatest": f.latest(i), "publishedAt": "2026-01-02T03:04:05Z"}
	if r.message != "" {
		official["statusMessage"] = r.message
	}
	return map[string]any{"server": json.RawMessage(r.document),
		"_meta": map[string]any{"io.modelcontextprotocol.registry/official": official}}
}

func (f *fakeRegistry) list(w http.ResponseWriter, q url.Values) {
	if s := q.Get("search"); s != "" && len([]rune(strings.TrimSpace(s))) < 3 {
		problem(w, http.StatusUnprocessableEntity, "search must contain at least 3 characters after trimming surrounding whitespace")
		return
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		limit = 30
	}
	var fit []int
	for i, r := range f.records {
		if strings.Contains(strings.ToLower(r.head().Name), strings.ToLower(q.Get("search"))) && r.status != "deleted" &&
			(q.Get("version") != "latest" || f.latest(i)) {
			fit = append(fit, i)
		}
	}
	slices.SortFunc(fit, func(a, b int) int { return strings.Compare(f.cursor(a), f.cursor(b)) })
	fit = slices.DeleteFunc(fit, func(i int) bool { return f.cursor(i) <= q.Get("cursor") })
	meta := map[string]any{}
	if len(fit) > limit {
		fit = fit[:limit]
		meta["nextCursor"] = f.cursor(fit[limit-1])
	}
	servers := []any{}
	for _, i := range fit {
		servers = append(servers, f.entryJSON(i))
	}
	meta["count"] = len(servers)
	answer(w, map[string]any{"servers": servers, "metadata": meta})
}

func (f *fakeRegistry) cursor(i int) string {
	h := f.records[i].head()
	return h.Name + ":" + h.Version
}

func (f *fakeRegistry) one(w http.ResponseWriter, name, version string, deleted bool) {
	for i, r := range f.records {
		if h := r.head(); h.Name == name && (h.Version == version || version == "latest" && f.latest(i)) &&
			(r.status != "deleted" || deleted) {
			answer(w, f.entryJSON(i))
			return
		}
	}
	problem(w, http.StatusNotFound, "Server not found")
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// serve opens a registry that h answers for.
func serve(t *testing.T, h http.Handler, set ...func(*install.Options)) (*install.Registry, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	o := install.Options{Base: s.URL, Cache: t.TempDir(), Bundles: t.TempDir(), HTTP: s.Client().Transport,
		Machine: plan.Machine{OS: "linux", Home: "/home/ann"}}
	for _, f := range set {
		f(&o)
	}
	r, err := install.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

func npm(name, version string) record {
	return record{document: `{"name":"` + name + `","description":"d of ` + name + `","version":"` + version + `",` +
		`"packages":[{"registryType":"npm","identifier":"x","version":"` + version + `","transport":{"type":"stdio"}}]}`}
}

// deliver answers without a socket, for tests in virtual time.
type deliver func(r *http.Request) (*http.Response, error)

func (d deliver) RoundTrip(r *http.Request) (*http.Response, error) { return d(r) }

func response(r *http.Request, status int, body string, header ...string) *http.Response {
	w := httptest.NewRecorder()
	for i := 0; i+1 < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	_, _ = w.WriteString(body)
	resp := w.Result()
	resp.Request = r
	return resp
}

// page is an empty answer to a search.
const page = `{"servers":[],"metadata":{"count":0}}`

// dropped waits for the end of the request, as a server that says nothing does.
func dropped(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
