package install

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// Official is the base URL of the MCP project's registry.
const Official = "https://registry.modelcontextprotocol.io"

// Options say which registry is asked, and where bundles are kept. The zero value asks the official registry and cannot
// install bundles.
type Options struct {
	// Base is the registry's URL, without /v0.1; Official if empty. http is accepted for this machine only.
	Base string
	// Token, if not empty, is sent to the registry as a bearer token, and to no other host.
	Token string
	// Agent is the User-Agent; "mcpvisor" if empty.
	Agent string
	// HTTP performs the requests; nil means a transport with mcpvisor's usual settings, whose idle connections close
	// after 90 s. A caller that sets it has to check the addresses behind the hosts of bundles itself.
	HTTP http.RoundTripper

	// Cache is the directory of downloaded bundles, Bundles the one where they are unpacked. Entries refer to files in
	// Bundles, so that it must not be a directory that the system empties. Both are created for the person alone
	// (0700).
	Cache, Bundles string
	// MaxDownload bounds one bundle in bytes; 0 means 512 MiB. MaxUnpacked bounds its unpacked content; 0 means 2 GiB.
	MaxDownload, MaxUnpacked int64
	// Machine describes the machine for the choice of a package.
	Machine plan.Machine
}

// Registry is a client of an MCP registry. It is safe for concurrent use.
type Registry struct {
	o    Options
	base *url.URL
	// rt performs requests to the registry, files performs downloads.
	rt, files http.RoundTripper
}

// New checks the options and sends nothing. The errors are of messages.ClassConfig.
func New(o Options) (*Registry, error) {
	if o.Base == "" {
		o.Base = Official
	}
	if o.Agent == "" {
		o.Agent = "mcpvisor"
	}
	// People copy the address with the version of the API.
	base, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(o.Base, "/"), "/v0.1"))
	fix := "write https://HOST, without /v0.1"
	switch {
	case err != nil || base.Host == "" || base.RawQuery != "" || base.Fragment != "" ||
		base.Scheme != "https" && base.Scheme != "http":
		// The address may hold a secret, and is not quoted.
		return nil, configError("the address of the registry is no URL", fix)
	// A password in the address would appear in messages; Token is the place for it.
	case base.User != nil:
		return nil, configError("the address of the registry holds a user name or a password", fix)
	case base.Scheme == "http" && !addresses.ThisMachine(base.Hostname()):
		return nil, configError("the registry "+messages.Line(base.Host, 100)+" is to be asked over http, and whoever is on the way "+
			"could choose which programs run here", "use https")
	}
	files := newDownloadTransport(base, o.HTTP)
	return &Registry{o: o, base: base, rt: registryTransport{files}, files: files}, nil
}

// configError returns an error about the options.
func configError(text, fix string) error {
	return &messages.Error{Op: "install", Class: messages.ClassConfig, Text: text, Fix: fix}
}

// Host returns the registry's host for messages, escaped.
func (r *Registry) Host() string { return messages.Line(r.base.Host, 100) }

// Status says whether a version of a server can be installed.
type Status string

const (
	// Active is the usual status, and that of registries which give none.
	Active Status = "active"
	// Deprecated versions can be installed, with a note.
	Deprecated Status = "deprecated"
	// Deleted versions are refused.
	Deleted Status = "deleted"
)

// Entry is a version of a server as a registry describes it. The texts are the publisher's and are not escaped.
type Entry struct {
	plan.Server
	Status Status
	// StatusMessage gives the publisher's reason for the status; it may be empty.
	StatusMessage string
	// Latest is true for the newest version.
	Latest bool
	// Published is the zero time if the registry does not say it.
	Published time.Time
}

// Query describes a page of servers.
type Query struct {
	// Word is a part of the name; an empty one matches all servers. The official registry wants three characters.
	Word string
	// Cursor is the Page.Next of the previous page; empty for the first page.
	Cursor string
	// Limit bounds the number of servers, 1 to 100; 0 means 30.
	Limit int
}

// Page is a page of the latest versions of servers.
type Page struct {
	Entries []Entry
	// Next is the Cursor of the next page; empty at the end.
	Next string
	// Skipped counts the entries that could not be read, because they violate the schema of server.json.
	Skipped int
}

// The wire form of API v0.1. Pointers and raw messages tell a missing member from an empty one.
type (
	wirePage struct {
		Servers  *[]wireEntry `json:"servers"`
		Metadata struct {
			NextCursor string `json:"nextCursor"`
		} `json:"metadata"`
	}
	wireEntry struct {
		Server json.RawMessage `json:"server"`
		Meta   struct {
			Official struct {
				Status        Status    `json:"status"`
				StatusMessage string    `json:"statusMessage"`
				PublishedAt   time.Time `json:"publishedAt"`
				IsLatest      bool      `json:"isLatest"`
			} `json:"io.modelcontextprotocol.registry/official"`
		} `json:"_meta"`
	}
)

// toEntry reads the server.json of an entry. Registries other than the official one may leave the status out.
func (w wireEntry) toEntry() (Entry, error) {
	s, err := plan.Read(w.Server)
	if err != nil {
		return Entry{}, err
	}
	o := w.Meta.Official
	if o.Status == "" {
		o.Status = Active
	}
	return Entry{Server: s, Status: o.Status, StatusMessage: o.StatusMessage, Latest: o.IsLatest, Published: o.PublishedAt}, nil
}

// Search returns a page of the servers that have a word in their names. Entries that cannot be read are counted and
// skipped, so that one bad publication does not hide the others.
func (r *Registry) Search(ctx context.Context, q Query) (Page, error) {
	limit := q.Limit
	if limit == 0 {
		limit = 30
	}
	if limit < 1 || limit > 100 {
		return Page{}, &messages.Error{Op: "search", Class: messages.ClassInvalid,
			Text: "a page has 1 to 100 servers, and " + strconv.Itoa(limit) + " are asked for"}
	}
	// Only the latest versions are listed, one entry for each server.
	values := url.Values{"version": {"latest"}, "limit": {strconv.Itoa(limit)}}
	if q.Word != "" {
		values.Set("search", q.Word)
	}
	if q.Cursor != "" {
		values.Set("cursor", q.Cursor)
	}
	u := r.base.JoinPath("v0.1", "servers")
	u.RawQuery = values.Encode()
	body, err := r.getWithRetry(ctx, "search", u)
	if err != nil {
		return Page{}, err
	}
	var wire wirePage
	// A missing list is no empty one: the address may be that of another service.
	if err := rawjson.Unmarshal(body, &wire); err != nil || wire.Servers == nil {
		return Page{}, r.protocolError("search", "its answer is no page of servers")
	}
	p := Page{Next: wire.Metadata.NextCursor}
	for _, w := range *wire.Servers {
		e, err := w.toEntry()
		if err != nil {
			p.Skipped++
			continue
		}
		p.Entries = append(p.Entries, e)
	}
	return p, nil
}

// protocolError returns the error about an answer that does not fit the API.
func (r *Registry) protocolError(op, text string) error {
	return &messages.Error{Op: op, Class: messages.ClassProtocol, Text: "the registry " + r.Host() + ": " + text,
		Fix: "is it the base URL of an MCP registry with API v0.1?"}
}

// Server returns one version of a server by its full name, the latest if version is empty. For a deleted one, the error
// says so.
func (r *Registry) Server(ctx context.Context, name, version string) (Entry, error) {
	if version == "" {
		version = "latest"
	}
	// The usual request comes first, because deleted versions are rare.
	e, err := r.getVersion(ctx, name, version, false)
	if isFound(err) {
		return e, err
	}
	// Without include_deleted the registry answers 404 for a deleted version, as for one that never was.
	deletedEntry, deleted := r.getVersion(ctx, name, version, true)
	if deleted == nil && deletedEntry.Status == Deleted {
		return Entry{}, deletedEntry.deletedError(r)
	}
	return Entry{}, err
}

// deletedError returns the error about a deleted version, with the publisher's reason.
func (e Entry) deletedError(r *Registry) error {
	text := fmt.Sprintf("%s %s was deleted from the registry %s", messages.Line(e.Name, 200), messages.Line(e.Version, 60), r.Host())
	if e.StatusMessage != "" {
		text += ": " + messages.Line(e.StatusMessage, 300)
	}
	return &messages.Error{Op: "install", Class: messages.ClassInvalid, Text: text, Err: plan.ErrName}
}

// getVersion requests one version; deleted also accepts deleted ones. An answer about another server or version is an
// error, because installing it would run a program that was not asked for.
func (r *Registry) getVersion(ctx context.Context, name, version string, deleted bool) (Entry, error) {
	// The name contains a slash, which must not become a part of the path.
	u := r.base.JoinPath("v0.1", "servers", url.PathEscape(name), "versions", url.PathEscape(version))
	if deleted {
		u.RawQuery = "include_deleted=true"
	}
	body, err := r.getWithRetry(ctx, "install", u)
	if err != nil {
		return Entry{}, err
	}
	var wire wireEntry
	if err := rawjson.Unmarshal(body, &wire); err != nil || wire.Server == nil {
		return Entry{}, r.protocolError("install", "its answer is no server")
	}
	e, err := wire.toEntry()
	if err != nil {
		return Entry{}, err
	}
	if !strings.EqualFold(e.Name, name) || version != "latest" && e.Version != version {
		return Entry{}, r.protocolError("install", "asked for "+messages.Line(name+" "+version, 200)+", it gives "+
			messages.Line(e.Name+" "+e.Version, 200))
	}
	return e, nil
}
