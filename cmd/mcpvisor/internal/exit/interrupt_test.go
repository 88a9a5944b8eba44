package exit

import (
	"os"
	"testing"
)

// TestOneInterruptIsAQuestions checks that a question takes one Ctrl-C and the next one belongs to the command, so that a
// server that asks again and again cannot keep the person from ending the command.
func TestOneInterruptIsAQuestions(t *testing.T) {
	i := &Interrupts{}
	if i.passToQuestion(os.Interrupt) {
		t.Error("there was no question")
	}
	taken := 0
	release := i.CaptureNext(func() { taken++ })
	if !i.passToQuestion(os.Interrupt) || taken != 1 || i.passToQuestion(os.Interrupt) {
		t.Error("a question takes one, and no second one")
	}
	release(false)
	release = i.CaptureNext(func() { taken++ })
	if i.passToQuestion(os.Interrupt) || taken != 1 {
		t.Error("the next question has taken the second one")
	}
	release(true) // it was answered
	release = i.CaptureNext(func() { taken++ })
	if !i.passToQuestion(os.Interrupt) || taken != 2 {
		t.Error("after an answer a question may take one again")
	}
	release(false)
}
