package mcpgo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestAnswersAreThoseOfMarshal: an answer is what json.Marshal makes of it.
func TestAnswersAreThoseOfMarshal(t *testing.T) {
	schema := mcp.NewToolResultStructured(map[string]any{"<&>": []int{1, 2}, "b": nil}, "a \u2028 <text> \x00 \"ä\"")
	schema.Meta = mcp.NewMetaFromMap(map[string]any{"io.example/key": 7, "progressToken": "x"})
	raw := mcp.NewToolResultText("")
	raw.RawStructuredContent = []byte(`{"n":9007199254740993}`)
	for name, result := range map[string]any{
		"text":       mcp.NewToolResultText("fine"),
		"error":      mcp.NewToolResultError("not\nfine"),
		"structured": schema,
		"raw":        raw,
		"image":      mcp.NewToolResultImage("an image", "AAAA", "image/png"),
		"texts": &mcp.CallToolResult{Content: []mcp.Content{
			mcp.TextContent{Type: "text", Text: "a"}, mcp.TextContent{Text: "<b>\n"}, mcp.TextContent{Type: "ä", Text: "\xff~\x7f"},
		}},
		"a text and an image": &mcp.CallToolResult{Content: []mcp.Content{
			mcp.NewTextContent("a"), mcp.NewImageContent("AAAA", "image/png"),
		}},
		"annotated": &mcp.CallToolResult{Content: []mcp.Content{
			mcp.TextContent{Annotated: mcp.Annotated{Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}}}, Type: "text", Text: "a"},
		}},
		"text with meta": &mcp.CallToolResult{Content: []mcp.Content{
			mcp.TextContent{Meta: mcp.NewMetaFromMap(map[string]any{"k": 1}), Type: "text", Text: "a"},
		}},
		"by pointer": &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Type: "text", Text: "a"}}},
		"modern": &mcp.CallToolResult{IsError: true, Content: []mcp.Content{mcp.NewTextContent("a")}, Result: mcp.Result{
			Meta: mcp.NewMetaFromMap(map[string]any{"<&>": map[string]any{"name": "\u2028"}}), ResultType: "complete<",
		}},
		"asks": &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("a")}, MultiRoundTripResult: mcp.MultiRoundTripResult{
			RequestState: "s",
		}},
		"empty":   &mcp.CallToolResult{},
		"none":    (*mcp.CallToolResult)(nil),
		"another": mcp.PingRequest{},
		"nil":     nil,
	} {
		message := mcp.NewJSONRPCResultResponse(mcp.NewRequestId(int64(77)), result)
		want, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		got, err := encodeAnswer([]byte("77"), func() mcp.JSONRPCMessage { return message })
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
	for _, r := range []*mcp.CallToolResult{
		{StructuredContent: func() {}},
		{Result: mcp.Result{Meta: mcp.NewMetaFromMap(map[string]any{"k": func() {}})}},
	} {
		if _, err := encodeAnswer([]byte("1"), func() mcp.JSONRPCMessage {
			return mcp.NewJSONRPCResultResponse(mcp.NewRequestId(1), r)
		}); err == nil {
			t.Errorf("a result that is no JSON is written without an error: %+v", r)
		}
	}
}

// FuzzAnswers holds the short way to the long one.
func FuzzAnswers(f *testing.F) {
	f.Add("text", "fine", "", false)
	f.Add("text", "two\nlines, \"quoted\" <&> \\ \u2028 \xff", "complete", true)
	f.Fuzz(func(t *testing.T, kind, text, resultType string, isError bool) {
		r := &mcp.CallToolResult{Content: []mcp.Content{mcp.TextContent{Type: kind, Text: text}, mcp.NewTextContent(kind)}, IsError: isError}
		r.ResultType = mcp.ResultType(resultType)
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := appendTexts([]byte("before"), r)
		if !ok || string(got) != "before"+string(want) {
			t.Errorf("%q, %t; want %q", got, ok, want)
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	for name, text := range map[string]string{"100B": strings.Repeat("x", 100), "64KB": strings.Repeat("x", 1<<16), "lines": strings.Repeat("x\n", 50)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := mcp.NewToolResultText(text)
			for b.Loop() {
				if _, err := answerOf([]byte("1"), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
