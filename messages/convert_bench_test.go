package messages_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// BenchmarkConvertTool measures a tool on its way to another actor and back, with a schema as servers have them.
func BenchmarkConvertTool(b *testing.B) {
	schema := `{"type":"object","properties":{`
	for i := range 12 {
		schema += fmt.Sprintf(`"field%d":{"type":"string","description":"what the field %d is for, in a sentence"},`, i, i)
	}
	schema += `"last":{"type":"boolean"}},"required":["field1"]}`
	hint := true
	tool := messages.Tool{
		Server: "github", Name: "create_issue", Title: "Create an issue", Description: "Creates an issue in a repository.",
		InputSchema: json.RawMessage(schema), Annotations: &messages.Annotations{ReadOnly: &hint},
		Raw: json.RawMessage(`{"name":"create_issue","title":"Create an issue","inputSchema":` + schema + `}`),
	}
	b.Run("to", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = tool.ToWholeProto()
		}
	})
	b.Run("from", func(b *testing.B) {
		p := tool.ToWholeProto()
		b.ReportAllocs()
		for b.Loop() {
			_ = p.ToTool()
		}
	})
}

// BenchmarkConvertStatus measures a status, which travels with every change of a server.
func BenchmarkConvertStatus(b *testing.B) {
	status := messages.Status{Name: "github", Status: messages.Connected, Transport: messages.HTTP, ProtocolVersion: "2025-11-25",
		Epoch: 7, ServerInfo: &messages.ServerInfo{Name: "GitHub", Version: "1"}}
	for i := range 40 {
		status.Tools = append(status.Tools, messages.ToolInfo{Name: fmt.Sprint("tool ", i), Description: "What it does, in a sentence."})
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = status.ToWholeProto().ToStatus()
	}
}
