package supervisor_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestANilResultIsEmpty: a nil result comes with every error, and its text could be asked for; its other methods panicked.
func TestANilResultIsEmpty(t *testing.T) {
	var r *supervisor.Result
	parts, err := r.Content()
	if r.Text() != "" || r.Flaw() != "" || r.Outcome() != "" || r.Structured() != nil || parts != nil || err != nil {
		t.Errorf("%q %q %q %q %v %v", r.Text(), r.Flaw(), r.Outcome(), r.Structured(), parts, err)
	}
	var read *supervisor.ResourceResult
	var prompt *supervisor.PromptResult
	if read.Text() != "" || read.Contents() != nil || prompt.Messages() != nil {
		t.Errorf("%q %v %v", read.Text(), read.Contents(), prompt.Messages())
	}
}
