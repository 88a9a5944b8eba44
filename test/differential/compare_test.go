package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// perform sends a request and everything that belongs to it: further pages of a list, and the second round of a request that needs
// input. It returns what is compared, as text.
func perform(c client, q request, v view, modern bool) (string, error) {
	body := q.body(v, modern)
	e, err := c.exchange(q, body)
	if err != nil {
		return "", err
	}
	if !q.reachesServer(modern) {
		return "answer of the kind " + kindOf(e.answer), nil
	}
	if id := rawjson.Member(e.answer, "id"); string(id) != q.id {
		return "", fmt.Errorf("the answer to %s has the id %s", q.id, id)
	}
	if strings.HasSuffix(q.method, "/list") {
		return wholeList(c, q, v, modern, e)
	}
	if q.method == "ping" || q.method == "logging/setLevel" {
		e.beside = nil
	}
	text := e.text()
	result := rawjson.Member(e.answer, "result")
	if state := rawjson.Member(result, "requestState"); modern && state != nil && string(rawjson.Member(result, "resultType")) == `"input_required"` {
		text = strings.Replace(text, string(state), "STATE", 1)
		next := q
		next.params = q.params.clone().add("inputResponses", scalar(`{"q":{"action":"accept","content":{"n":1.50}}}`)).add("requestState", scalar(string(state)))
		second, err := c.exchange(next, next.body(v, modern))
		if err != nil {
			return "", err
		}
		text += "\nthen " + second.text()
	}
	return text, nil
}

// text shows an exchange without its id.
func (e exchange) text() string {
	var b strings.Builder
	for _, line := range e.beside {
		b.WriteString(compact(line) + "\n")
	}
	if problem := rawjson.Member(e.answer, "error"); problem != nil {
		fmt.Fprintf(&b, "error %s %s %s", rawjson.Member(problem, "code"), rawjson.Member(problem, "message"), compact(string(rawjson.Member(problem, "data"))))
	} else {
		b.WriteString("result " + compact(string(rawjson.Member(e.answer, "result"))))
	}
	return b.String()
}

// compact takes the spaces between tokens out, and nothing else.
func compact(text string) string {
	name, body, ok := strings.Cut(text, " ")
	if !ok || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		name, body = "", text
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(body)) != nil {
		return text
	}
	return strings.TrimSpace(name + " " + b.String())
}

// kindOf says whether an answer is a result, or which code its error has.
func kindOf(answer []byte) string {
	if problem := rawjson.Member(answer, "error"); problem != nil {
		return "error " + string(rawjson.Member(problem, "code"))
	}
	return "result"
}

// wholeList reads all pages, whose number is that of one hop, and shows the definitions by the server's own names.
func wholeList(c client, q request, v view, modern bool, e exchange) (string, error) {
	var all []string
	for page := 0; ; page++ {
		result := rawjson.Member(e.answer, "result")
		if result == nil || page > 100 {
			return e.text(), nil
		}
		for o := rawjson.ObjectAt(result, 0, 0); o.Next(); {
			name, list := string(o.Name), o.Skip()
			if !rawjson.IsArray(list) || name == "_meta" {
				continue
			}
			for a := rawjson.ArrayAt(list, 0, 0); a.Next(); {
				all = append(all, name+" "+v.ownName(compact(string(a.Skip()))))
			}
		}
		cursor := rawjson.Member(result, "nextCursor")
		if cursor == nil {
			if q.method == "tools/list" { // the gateway's order is that of their names
				slices.Sort(all)
			}
			return strings.Join(all, "\n"), nil
		}
		next := q
		next.params = object("cursor", scalar(string(cursor)))
		var err error
		if e, err = c.exchange(next, next.body(v, modern)); err != nil {
			return "", err
		}
	}
}

// ownName returns a definition with the server's own name.
func (v view) ownName(definition string) string {
	if v.prefix == "" {
		return definition
	}
	for own, shown := range shownNames {
		definition = strings.Replace(definition, `"name":"`+v.prefix+shown+`"`, `"name":"`+own+`"`, 1)
	}
	return strings.Replace(definition, `"name":"`+v.prefix, `"name":"`, 1)
}

// A difference is a request to which the gateway did not answer as the server.
type difference struct {
	cell            cell
	view            view
	seed            uint64
	request         request
	direct, through string
}

func (d difference) String() string {
	return fmt.Sprintf("%s, %s, seed %d\n  request  %s\n  direct   %s\n  through  %s", d.cell, d.view, d.seed, cut(d.request.body(view{}, false)),
		shown(d.direct, d.through), shown(d.through, d.direct))
}

// shown is a text from a little before the place where it differs from another.
func shown(text, other string) string {
	i := 0
	for i < len(text) && i < len(other) && text[i] == other[i] {
		i++
	}
	if i < 160 {
		return cut(text)
	}
	return "… (the same " + strconv.Itoa(i-80) + " bytes) " + cut(text[i-80:])
}

func cut(text string) string {
	if len(text) > 1200 {
		return strconv.Quote(text[:1200]) + " … (" + strconv.Itoa(len(text)) + " bytes)"
	}
	return text
}

// compare makes a request both ways.
func (s *stand) compare(q request, which int) (direct, through string, err error) {
	v := views[which]
	if direct, err = perform(s.direct, q, view{}, s.modern); err != nil {
		return "", "", fmt.Errorf("direct: %w", err)
	}
	through, problem := perform(s.through[which], q, v, s.modern)
	if problem != nil {
		through = problem.Error() // no answer is another one
	}
	return direct, through, nil
}

// shrink makes a request simpler as long as the ways differ.
func (s *stand) shrink(d difference, which int) difference {
	tries := 0
	differs := func(q request) bool {
		tries++
		direct, through, err := s.compare(q, which)
		if err != nil || direct == through {
			return false
		}
		d.request, d.direct, d.through = q, direct, through
		return true
	}
	for changed := true; changed && tries < 2000; {
		changed = false
		q := d.request
		var steps []request
		if q.spaces != 0 {
			steps = append(steps, request{method: q.method, id: q.id, params: q.params})
		}
		if q.id != "1" {
			steps = append(steps, request{method: q.method, id: "1", params: q.params, spaces: q.spaces})
		}
		if q.params != nil {
			for _, p := range q.params.simpler() {
				steps = append(steps, request{method: q.method, id: q.id, params: p, spaces: q.spaces})
			}
		}
		for _, step := range steps {
			if q.whole == "" && differs(step) {
				changed = true
				break
			}
		}
	}
	return d
}
