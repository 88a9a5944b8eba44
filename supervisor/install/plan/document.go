package plan

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Server is one server.json, as far as running the server needs it. The texts are the publisher's and are not escaped.
type Server struct {
	Name        string      `json:"name"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	WebsiteURL  string      `json:"websiteUrl,omitempty"`
	Repository  *Repository `json:"repository,omitempty"`
	Packages    []Package   `json:"packages,omitempty"`
	Remotes     []Transport `json:"remotes,omitempty"`
}

// Repository is the publisher's statement about the place of the source, which the registry does not verify here.
type Repository struct {
	URL string `json:"url,omitempty"`
}

// Package is a package of a package registry.
type Package struct {
	// RegistryType is one of Kinds, or a word that Build refuses.
	RegistryType string `json:"registryType"`
	// RegistryBaseURL is the package registry, if it is not the usual one of its type.
	RegistryBaseURL string `json:"registryBaseUrl,omitempty"`
	// Identifier is the name of the package, the reference of an image, or the URL of a bundle.
	Identifier string `json:"identifier"`
	Version    string `json:"version,omitempty"`
	// FileSHA256 is the checksum of a bundle, or the digest of an image in older documents.
	FileSHA256 string `json:"fileSha256,omitempty"`
	// RuntimeHint is the program that the publisher proposes for running the package.
	RuntimeHint          string     `json:"runtimeHint,omitempty"`
	Transport            Transport  `json:"transport"`
	RuntimeArguments     []Argument `json:"runtimeArguments,omitempty"`
	PackageArguments     []Argument `json:"packageArguments,omitempty"`
	EnvironmentVariables []KeyValue `json:"environmentVariables,omitempty"`
}

// Transport says how a package or a remote communicates: stdio, streamable-http or sse.
type Transport struct {
	Type    string     `json:"type"`
	URL     string     `json:"url,omitempty"`
	Headers []KeyValue `json:"headers,omitempty"`
	// Variables holds the values for the names in braces of URL.
	Variables map[string]Field `json:"variables,omitempty"`
}

// Field is a value that the publisher fixed (Value), that has a default, or that the person gives.
type Field struct {
	Description string   `json:"description,omitempty"`
	IsRequired  bool     `json:"isRequired,omitempty"`
	Format      string   `json:"format,omitempty"`
	Value       *Text    `json:"value,omitempty"`
	IsSecret    bool     `json:"isSecret,omitempty"`
	Default     *Text    `json:"default,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`
	Choices     []string `json:"choices,omitempty"`
}

// KeyValue is an environment variable or a header.
type KeyValue struct {
	Field
	Name      string           `json:"name"`
	Variables map[string]Field `json:"variables,omitempty"`
}

// Argument is a word, or a flag and a word, of a command line.
type Argument struct {
	Field
	// Type is named or positional.
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	// ValueHint names a positional argument for people.
	ValueHint  string           `json:"valueHint,omitempty"`
	IsRepeated bool             `json:"isRepeated,omitempty"`
	Variables  map[string]Field `json:"variables,omitempty"`
}

// Text is a string. Numbers and truth values, which some publishers write without quotes, become their own text.
type Text string

// UnmarshalJSON implements json.Unmarshaler. A list or an object is an error.
func (t *Text) UnmarshalJSON(b []byte) error {
	// The decoder calls this method with a whole value, which has one byte at least.
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(t))
	case '{', '[':
		return &json.UnmarshalTypeError{Value: "a list or an object"}
	}
	*t = Text(b)
	return nil
}

// fullNamePattern matches namespace/server, the form of a name in a registry.
var fullNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`) })

// The bounds of one document: its ways, the inputs of one package, and the length of a name. Documents of the official
// registry are far below.
const (
	maxWays  = 64
	maxItems = 256
	maxName  = 200
)

// Read reads one server.json. It ignores unknown keys, because registries add their own. A fault of one package or
// remote is found by Build, so that the others remain usable. The cause of its errors is ErrDocument.
func Read(document []byte) (Server, error) {
	var s Server
	if err := rawjson.Unmarshal(document, &s); err != nil {
		return Server{}, planError(ErrDocument, "this is no server.json: "+strings.TrimPrefix(err.Error(), "json: "), "")
	}
	return s, s.checkDocument()
}

// checkDocument checks the name, the version and the bounds.
func (s Server) checkDocument() error {
	switch {
	case len(s.Name) > maxName || !fullNamePattern().MatchString(s.Name):
		return planError(ErrDocument, "the server.json has no name of the form namespace/server", "")
	case s.Version == "":
		return planError(ErrDocument, "the server.json of "+messages.Line(s.Name, 100)+" has no version", "")
	// The bounds keep a hostile document from asking a person endless questions.
	case len(s.Packages)+len(s.Remotes) > maxWays:
		return planError(ErrDocument, "the server.json of "+messages.Line(s.Name, 100)+" has more packages than anybody needs", "")
	}
	for _, p := range s.Packages {
		if len(p.RuntimeArguments)+len(p.PackageArguments)+len(p.EnvironmentVariables)+len(p.Transport.Headers) > maxItems {
			return planError(ErrDocument, "a package of "+messages.Line(s.Name, 100)+" has more inputs than anybody fills", "")
		}
	}
	return nil
}
