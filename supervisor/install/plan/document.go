package plan

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Server is one server.json, as far as running the server needs it. The texts are the publisher's.
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

// Repository is where the source is said to be.
type Repository struct {
	URL string `json:"url,omitempty"`
}

// Package is a package of a package registry.
type Package struct {
	RegistryType         string     `json:"registryType"`
	RegistryBaseURL      string     `json:"registryBaseUrl,omitempty"`
	Identifier           string     `json:"identifier"`
	Version              string     `json:"version,omitempty"`
	FileSHA256           string     `json:"fileSha256,omitempty"`
	RuntimeHint          string     `json:"runtimeHint,omitempty"`
	Transport            Transport  `json:"transport"`
	RuntimeArguments     []Argument `json:"runtimeArguments,omitempty"`
	PackageArguments     []Argument `json:"packageArguments,omitempty"`
	EnvironmentVariables []KeyValue `json:"environmentVariables,omitempty"`
}

// Transport is how a package or a remote is spoken to: stdio, streamable-http or sse.
type Transport struct {
	Type      string           `json:"type"`
	URL       string           `json:"url,omitempty"`
	Headers   []KeyValue       `json:"headers,omitempty"`
	Variables map[string]Field `json:"variables,omitempty"`
}

// Field is a value that is fixed, has a default, or is the person's to give.
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
	Type       string           `json:"type"`
	Name       string           `json:"name,omitempty"`
	ValueHint  string           `json:"valueHint,omitempty"`
	IsRepeated bool             `json:"isRepeated,omitempty"`
	Variables  map[string]Field `json:"variables,omitempty"`
}

// Text is a string. Numbers and truth values, which some publishers write without quotes, are taken as they are written.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(t))
	case '{', '[':
		return &json.UnmarshalTypeError{Value: "a list or an object"}
	}
	*t = Text(b)
	return nil
}

// fullNamePattern is the form of a name in a registry.
var fullNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`) })

// Bounds of one document. The official registry's are far below.
const (
	maxWays  = 64
	maxItems = 256
	maxName  = 200
)

// Read reads one server.json. Unknown keys are ignored: registries add their own. What makes one package or remote
// unusable is found by Build, so that the others remain.
func Read(document []byte) (Server, error) {
	var s Server
	if err := rawjson.Unmarshal(document, &s); err != nil {
		return Server{}, planError(ErrDocument, "this is no server.json: "+strings.TrimPrefix(err.Error(), "json: "), "")
	}
	return s, s.checkDocument()
}

func (s Server) checkDocument() error {
	switch {
	case len(s.Name) > maxName || !fullNamePattern().MatchString(s.Name):
		return planError(ErrDocument, "the server.json has no name of the form namespace/server", "")
	case s.Version == "":
		return planError(ErrDocument, "the server.json of "+messages.Line(s.Name, 100)+" has no version", "")
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
