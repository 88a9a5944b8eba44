package score

import (
	"bytes"
	"html/template"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// pageCase is one row of the page, with a cell for each client.
type pageCase struct {
	Case
	Cells []pageCell
}

// pageCell is what one client got in one case.
type pageCell struct {
	Got, Of int
	// Class is how the cell is coloured: all, some, none, or left for a case that was not played.
	Class string
	Lost  []string
	With  []int
}

// Page returns the scores as one page for a browser, which loads nothing and runs nothing: a bar for each client, and a picture of all
// cases with the reasons for lost points.
func Page(results []Result, command string) ([]byte, error) {
	var rows []pageCase
	for _, c := range Cases() {
		row := pageCase{Case: c}
		played := false
		for _, r := range results {
			cell := pageCell{Class: "left"}
			if i := slices.IndexFunc(r.Cases, func(p CaseResult) bool { return p.Number == c.Number }); i >= 0 {
				p := r.Cases[i]
				played = true
				cell = pageCell{Got: p.Got(), Of: p.MaxPoints(), Class: "some", With: p.With}
				for _, why := range p.Lost() {
					cell.Lost = append(cell.Lost, messages.Printable(why))
				}
				switch {
				case cell.Got == cell.Of:
					cell.Class = "all"
				case cell.Got == 0:
					cell.Class = "none"
				}
			}
			row.Cells = append(row.Cells, cell)
		}
		if played {
			rows = append(rows, row)
		}
	}
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		Results []Result
		Rows    []pageCase
		Command string
	}{results, rows, messages.Printable(command)})
	return b.Bytes(), err
}

// page is the page; html/template escapes every text for its place.
var page = template.Must(template.New("score").Funcs(template.FuncMap{
	"printable": messages.Printable,
	"part": func(r Result) int {
		if r.MaxPoints() == 0 {
			return 0
		}
		return 100 * r.Got() / r.MaxPoints()
	},
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>What MCP clients do on a bad day</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body{font:15px/1.4 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.3em .5em;text-align:left;vertical-align:top}
.bar{background:#eee;height:1em;width:20em;display:inline-block;vertical-align:middle}.bar i{background:#2a7;height:1em;display:block}
.all{background:#d9f2e3}.some{background:#fdeec4}.none{background:#f8d4d0}.left{color:#888}small{color:#555}ul{margin:.2em 0;padding-left:1.2em}
</style></head><body>
<h1>What MCP clients do on a bad day</h1><p>Made by <code>{{.Command}}</code></p>
<table><tr><th>client</th><th>points</th><th></th></tr>
{{range .Results}}<tr><td>{{printable .Name}}<br><small>{{printable .About}}{{if .Failed}} not played: {{printable .Failed}}{{end}}</small></td><td>{{.Sum}}</td>
<td><span class="bar"><i style="width:{{part .}}%"></i></span></td></tr>
{{end}}</table>
<h2>Cases</h2>
<table><tr><th>#</th><th>case</th>{{range .Results}}<th>{{printable .Name}}</th>{{end}}</tr>
{{range .Rows}}<tr><td>{{.Number}}</td><td>{{.Name}}<br><small>{{.Over}}. {{.Story}}</small></td>
{{range .Cells}}<td class="{{.Class}}">{{if .Of}}{{.Got}}/{{.Of}}{{else}}–{{end}}{{if .With}} <small>with {{.With}}</small>{{end}}
{{if .Lost}}<ul>{{range .Lost}}<li>{{.}}</li>{{end}}</ul>{{end}}</td>
{{end}}</tr>
{{end}}</table></body></html>
`))
