package scenario

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The servers of the harness have resources and prompts whose definitions follow from their names, so that an agent which is given one can tell
// whether it is the server's.

// OfferURI is the URI of a resource of a server.
func OfferURI(server, name string) string { return "chaos://" + server + "/" + name }

// partSuffix ends the URI of the part of a resource of which servers tell at times in the place of the whole.
const partSuffix = "/part"

// PartURI is the URI of the part of a resource.
func PartURI(whole string) string { return whole + partSuffix }

// WholeURI is the URI of the resource that an update is about: of a part that of the whole, which is what was subscribed to.
func WholeURI(uri string) string { return strings.TrimSuffix(uri, partSuffix) }

// ResourceOf is the definition of a resource of a server: of the one that it always has, or of an item.
func ResourceOf(server, name string) string {
	uri := quoted(OfferURI(server, name))
	if name == "one" {
		return `{"uri":` + uri + `,"name":"one","mimeType":"text/plain","size":12,` +
			`"annotations":{"audience":["user"],"priority":0.5},"icons":[{"src":"https://icons.sim/one.png","sizes":["48x48"]}]}`
	}
	return `{"uri":` + uri + `,"name":` + quoted(name) + `,"title":"An item","description":"One more."}`
}

// TemplateOf is the definition of a template of a server: of the one that it has only in a state, or, for 0, of the one that it always has.
func TemplateOf(server string, state int) string {
	if state == 0 {
		return `{"uriTemplate":` + quoted(OfferURI(server, "{name}")) + `,"name":"any","mimeType":"text/plain","annotations":{"lastModified":"2026-08-01T00:00:00Z"}}`
	}
	return `{"uriTemplate":` + quoted(OfferURI(server, "{name}"+templateState+strconv.Itoa(state))) + `,"name":` + quoted(TemplatePrefix+strconv.Itoa(state)) + `}`
}

// TemplatePrefix begins the name of the template that a server has only in a state; the number of the state follows.
const TemplatePrefix = "state-"

// templateState ends the URI of such a template, before the number of the state.
const templateState = "/" + TemplatePrefix

// StateOfTemplate is the state in which a server has a template, by the URI of the template; 0 for one that it always has.
func StateOfTemplate(uri string) int {
	_, number, _ := strings.Cut(uri, templateState)
	state, _ := strconv.Atoi(number)
	return state
}

// PromptOf is the definition of a prompt, by the name under which it is shown.
func PromptOf(name, shown string) string {
	if name == "greet" {
		return `{"name":` + quoted(shown) + `,"title":"Greets","arguments":[{"name":"who","description":"Whom.","required":true}]}`
	}
	return `{"name":` + quoted(shown) + `}`
}

// CompletionOf returns the proposals of a server for the value of an argument of a prompt or a template, where another argument has a value already.
func CompletionOf(about, argument, value, other string) messages.Completion {
	c := messages.Completion{Values: []string{value + " of " + argument + " in " + about}, Total: len(about), HasMore: len(about)%2 == 1}
	if other != "" {
		c.Values = append(c.Values, "beside "+other)
	}
	return c
}

// EncodeCompletion writes a completion as a server does.
func EncodeCompletion(c messages.Completion) string {
	values, _ := json.Marshal(c.Values) // texts can be written
	return `{"completion":{"values":` + string(values) + `,"total":` + strconv.Itoa(c.Total) + `,"hasMore":` + strconv.FormatBool(c.HasMore) + `}}`
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a text can be written
	return string(b)
}

// What a server that offers has beside tools, unless it lacks it. Announcements and subscriptions need what they are about.
const (
	HasResources       = "resources"
	HasPrompts         = "prompts"
	HasCompletions     = "completions"
	HasSubscribe       = "subscribe"
	HasResourceChanges = "resourceChanges"
	HasPromptChanges   = "promptChanges"
)

// Offers are the words of Group.Lacks.
var Offers = []string{HasResources, HasPrompts, HasCompletions, HasSubscribe, HasResourceChanges, HasPromptChanges}

// Has reports whether the server declares one of Offers.
func (s Server) Has(what string) bool {
	lacks := strings.Split(s.Lacks, ",")
	if !s.Offers || slices.Contains(lacks, what) {
		return false
	}
	switch what {
	case HasSubscribe, HasResourceChanges:
		return !slices.Contains(lacks, HasResources)
	case HasPromptChanges:
		return !slices.Contains(lacks, HasPrompts)
	}
	return true
}

// HasMethod reports whether the server answers a request about resources, prompts or completion, by its method; false for any other method.
func (s Server) HasMethod(method string) bool {
	switch {
	case method == "resources/subscribe", method == "resources/unsubscribe":
		return s.Has(HasSubscribe)
	case strings.HasPrefix(method, "resources/"):
		return s.Has(HasResources)
	case strings.HasPrefix(method, "prompts/"):
		return s.Has(HasPrompts)
	}
	return method == "completion/complete" && s.Has(HasCompletions)
}

// IsOfferMethod reports whether a method is about resources, prompts or completion.
func IsOfferMethod(method string) bool {
	return strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "prompts/") || method == "completion/complete"
}
