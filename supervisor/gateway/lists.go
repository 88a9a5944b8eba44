package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// A listKind is one of the four lists of the protocol.
type listKind int

const (
	toolList listKind = iota
	promptList
	resourceList
	templateList
	listKinds
)

// A notice is a notification that lists have changed. Resources and their templates share one.
type notice int

const (
	toolsNotice notice = iota
	promptsNotice
	resourcesNotice
	noticeKinds
)

var notices = [noticeKinds]struct {
	method string
	filter string // the member of the filter of subscriptions/listen
}{
	toolsNotice:     {"notifications/tools/list_changed", "toolsListChanged"},
	promptsNotice:   {"notifications/prompts/list_changed", "promptsListChanged"},
	resourcesNotice: {"notifications/resources/list_changed", "resourcesListChanged"},
}

// lists says of each kind how it is called, what tells of its changes, and, but for the tools, which the catalog has, who has it and how
// the session of a server is asked for its part.
var lists = [listKinds]struct {
	method, member string // of the request, and of its result
	notice         notice
	has            func(*wire.Capabilities) bool
	read           func(context.Context, *wire.Session) (listPart, error)
}{
	toolList: {method: "tools/list", member: "tools", notice: toolsNotice},
	promptList: {"prompts/list", "prompts", promptsNotice, func(c *wire.Capabilities) bool { return c.Prompts },
		partReader((*wire.Session).Prompts, func(p *messages.Prompt) (string, []byte) { return p.Name, p.Raw })},
	resourceList: {"resources/list", "resources", resourcesNotice, func(c *wire.Capabilities) bool { return c.Resources },
		partReader((*wire.Session).Resources, func(r *messages.Resource) (string, []byte) { return r.URI, r.Raw })},
	templateList: {"resources/templates/list", "resourceTemplates", resourcesNotice, func(c *wire.Capabilities) bool { return c.Resources },
		partReader((*wire.Session).ResourceTemplates, func(t *messages.ResourceTemplate) (string, []byte) { return t.URITemplate, t.Raw })},
}

// listSum is the sum of a list's definitions: two lists with one sum are the same list.
type listSum [sha256.Size]byte

// pages are a list of a view, ready to be sent: the results of its request in each era, a page each. They are immutable.
type pages struct {
	sum            listSum
	legacy, modern [][]byte
}

// maxPage bounds a page in bytes. Most agents read every page at once, so smaller ones would only cost requests.
const maxPage = 4 << 20

// renderPages is a pure function of the definitions.
func renderPages(kind listKind, definitions [][]byte) *pages {
	h := sha256.New()
	for _, d := range definitions {
		_, _ = h.Write(d)
		_, _ = h.Write([]byte{','})
	}
	p := &pages{sum: listSum(h.Sum(nil))}
	for begin := 0; ; {
		end, size := begin, 0
		for ; end < len(definitions) && (end == begin || size+len(definitions[end]) <= maxPage); end++ {
			size += len(definitions[end]) + 1
		}
		b := append(make([]byte, 0, size+128), `"`+lists[kind].member+`":[`...)
		b = append(append(b, bytes.Join(definitions[begin:end], []byte{','})...), ']')
		if end < len(definitions) {
			b = rawjson.AppendText(append(b, `,"nextCursor":`...), p.cursorOf(len(p.legacy)+1))
		}
		b = append(b, '}')
		p.legacy = append(p.legacy, append([]byte{'{'}, b...))
		p.modern = append(p.modern, append([]byte(`{"resultType":"complete",`+noCache+`,`), b...))
		if begin = end; begin == len(definitions) {
			return p
		}
	}
}

// cursorSum is how much of the sum of a list stands in its cursors.
const cursorSum = 12

// cursorOf names a page of one list: where the list is another one, the cursor is stale, and the list begins anew.
func (p *pages) cursorOf(page int) string {
	return base64.RawURLEncoding.EncodeToString(strconv.AppendInt(bytes.Clone(p.sum[:cursorSum]), int64(page), 10))
}

// answerPage returns the page that a request names, as it stands ready.
func (p *pages) answerPage(r *serve.Request) ([]byte, *serve.Error) {
	page, ok := p.findPage(rawjson.Member(r.Params, "cursor"))
	if !ok {
		return nil, serve.InvalidParams("the cursor is not one of this list")
	}
	if r.Modern() {
		return p.modern[page], nil
	}
	return p.legacy[page], nil
}

// findPage returns the number of the page that a cursor names; ok is false for a text that no list has given.
func (p *pages) findPage(cursor []byte) (page int, ok bool) {
	if rawjson.IsNull(cursor) {
		return 0, true
	}
	text, ok := rawjson.Text(cursor)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(b) <= cursorSum {
		return 0, false
	}
	page, err = strconv.Atoi(string(b[cursorSum:]))
	if err != nil || page < 0 {
		return 0, false
	}
	if !bytes.Equal(b[:cursorSum], p.sum[:cursorSum]) || page >= len(p.legacy) {
		return 0, true
	}
	return page, true
}

// answerList answers the request for a list.
func (v *view) answerList(ctx context.Context, kind listKind, r *serve.Request) ([]byte, *serve.Error) {
	// An agent of the modern era may begin with a list.
	began := r.Session.Began
	if began.IsZero() || began.After(v.made) {
		began = v.made
	}
	if time.Since(began) < startWait-aroundWait {
		v.g.awaitFirstList(ctx, began)
	}
	var p *pages
	due := time.Now().Add(partWait)
	if kind == toolList {
		p = v.currentTools().pages
	} else {
		l := v.offersOf(ctx, kind, due)
		v.noteOwners(kind, l)
		p = l.pages
	}
	v.noteListed(ctx, kind, &p.sum, due)
	return p.answerPage(r)
}
