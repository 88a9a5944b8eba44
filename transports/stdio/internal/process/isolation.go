package process

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/launcher"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
	"github.com/mcpvisor/mcpvisor/transports/stdio/children"
)

// childIsolation has what one connection's child is kept from, and what must be removed when the child has ended. A nil one is a
// child without isolation; its methods do nothing then.
type childIsolation struct {
	// steps are performed by the launcher, but for Temp, which this process performs.
	steps isolation.Steps
	// tempDir is the private temporary folder and remove its removal; empty and nil without one.
	tempDir string
	remove  func()
}

// planIsolation plans what want asks for and makes the private folder. The caller calls releaseTemp when no process of the child's
// group is left. can is asked only if the configuration is valid, because finding out may start a process.
func planIsolation(want *messages.Isolation, can func(messages.Isolation) isolation.Capabilities) (*childIsolation, *transports.Error) {
	if !want.Asks() {
		return nil, nil
	}
	// The configuration was checked when it was read; a program that makes transports by itself may bring its own.
	if faults := isolation.Check(want); len(faults) > 0 {
		f := faults[0]
		return nil, &transports.Error{Class: messages.ClassConfig, Text: "isolation." + f.Key + ": " + f.Text, Fix: f.Fix}
	}
	steps, err := isolation.Plan(want, can(*want))
	// Plan has no other error.
	var no *isolation.UnsupportedError
	if errors.As(err, &no) {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: no.Error(), Fix: no.Fix(), Err: no}
	}
	i := &childIsolation{steps: steps}
	if !steps.Temp {
		return i, nil
	}
	if i.tempDir, i.remove, err = temps.makeChildDir(); err != nil {
		return nil, &transports.Error{Class: messages.ClassExhausted, Err: systemCause(err),
			Text: "no folder can be made for the temporary files of the server: " + CauseText(err),
			Fix:  "see whether the temporary folder of this system exists and has room"}
	}
	// The private folder must be usable under any rule about files. The rule's slices are shared, so that they are copied.
	if f := i.steps.Files; f != nil && f.Write != nil {
		own := *f
		own.Write = append([]string{i.tempDir}, f.Write...)
		i.steps.Files = &own
	} else if f != nil && f.Read != nil {
		own := *f
		own.Read = append([]string{i.tempDir}, f.Read...)
		i.steps.Files = &own
	}
	return i, nil
}

// releaseTemp removes the private folder, if there is one.
func (i *childIsolation) releaseTemp() {
	if i != nil && i.remove != nil {
		i.remove()
	}
}

// withTempEnv returns the environment of the child: the three variables that name the temporary folder lead to the private one.
func (i *childIsolation) withTempEnv(env []string) []string {
	if i == nil || i.tempDir == "" {
		return env
	}
	own := make([]string, 0, len(env)+len(tempVariables))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		if !tempVariables[name] {
			own = append(own, kv)
		}
	}
	return append(own, "TMPDIR="+i.tempDir, "TMP="+i.tempDir, "TEMP="+i.tempDir)
}

// tempVariables are the names that withTempEnv replaces; on Windows they are compared in upper case.
var tempVariables = map[string]bool{"TMPDIR": true, "TMP": true, "TEMP": true}

// enforcedParts returns the parts that are in force, nil if the configuration asks for none.
func (i *childIsolation) enforcedParts() *messages.Enforced {
	if i == nil {
		return nil
	}
	return &i.steps.Enforced
}

// startChild starts cmd as a child, through the launcher if a step needs one, and returns when the program itself runs. No
// process is left if it fails.
func (i *childIsolation) startChild(ctx context.Context, cmd *exec.Cmd, as children.Child) (release func(), err error) {
	// Without a step inside of the child, the private folder at most, the program is started directly, which saves an exec.
	if i == nil || !i.steps.Launch() {
		return launchChild(ctx, children.TrackStart(cmd, as))
	}
	// From here on cmd starts this program, which becomes the server's.
	l, err := launcher.Wrap(cmd, i.steps)
	if err != nil {
		return nil, &launcherError{err}
	}
	// The number that is noted is that of the launcher, which becomes the program without getting another one.
	release, err = launchChild(ctx, children.TrackStart(cmd, as))
	if err != nil {
		l.Abandon()
		return nil, &launcherError{err}
	}
	if err = l.Finish(ctx); err != nil {
		// The whole group, because the launcher may have become the program while ctx ended, and have started something.
		if g, err := newProcessGroup(cmd.Process); err == nil {
			g.Kill()
			g.close()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		children.MarkReaped(cmd.Process.Pid)
		release()
		return nil, err
	}
	return release, nil
}

// launcherError marks an error of starting the launcher, as distinct from one of the server's program.
type launcherError struct{ err error }

// Error returns the text of the cause, which is never shown as it is: launchFailure and StartError choose the words.
func (e *launcherError) Error() string { return e.err.Error() }

// Unwrap lets errors.Is find the system's error, a shortage of memory for example.
func (e *launcherError) Unwrap() error { return e.err }

// launchFailure returns the error for an isolated child that could not be started; nil if the program itself was the reason,
// which StartError describes better.
func (i *childIsolation) launchFailure(err error) *transports.Error {
	var step *launcher.StepError
	var start *launcherError
	switch {
	case errors.As(err, &step) && step.Step == "exec":
		// With a rule about reading, a refusal to execute is most often about the interpreter, which lies in a folder of its own.
		if i.steps.Files != nil && i.steps.Files.Read != nil && errors.Is(err, syscall.EACCES) {
			return &transports.Error{Class: messages.ClassConfig, Err: systemCause(err),
				Text: "the program may not be executed, or the interpreter that its first line names not be read",
				Fix:  `add the folder of the interpreter to "read" of "isolation"`}
		}
	// The step failed at a path that the configuration names.
	case errors.As(err, &step) && step.Path != "":
		return &transports.Error{Class: messages.ClassConfig, Err: systemCause(err),
			Text: "isolation." + step.Step + ": " + quotePrintable(step.Path) + " cannot be used: " + CauseText(err),
			Fix:  "make it, or correct the path; a relative one starts at the working directory of the server"}
	case errors.As(err, &step):
		return &transports.Error{Class: messages.ClassConfig, Err: systemCause(err),
			Text: "isolation." + step.Step + " could not be enforced: " + CauseText(err),
			Fix:  `leave it out of "isolation", or allow it on this machine`}
	case errors.Is(err, launcher.ErrNoLauncher):
		return &transports.Error{Class: messages.ClassConfig, Err: launcher.ErrNoLauncher,
			Text: "the server cannot be isolated: " + launcher.ErrNoLauncher.Error(),
			Fix:  "embed mcpvisor in a program written in Go, or leave isolation out"}
	// A shortage of this machine is left to StartError, which gives it a class that is tried again.
	case errors.As(err, &start) && !isResourceShortage(err) && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE):
		return &transports.Error{Class: messages.ClassExited, Err: systemCause(err),
			Text: "the launcher that isolates the server cannot be started: " + CauseText(err)}
	}
	return nil
}

// FindCapabilities asks this machine what it can keep a server from.
func FindCapabilities(ctx context.Context) isolation.Capabilities {
	// These answers cost a few system calls and are not kept. A namespace needs a process to be tried.
	can := kernelCapabilities()
	if can.NoNamespace == "" {
		can.NoNamespace = probeNamespace(ctx)
	}
	return can
}

// FindCapabilitiesFor asks for what matters for want. It starts the trial process only if want needs the answer.
func FindCapabilitiesFor(ctx context.Context, want messages.Isolation) isolation.Capabilities {
	if want.Network == messages.NetworkLoopback {
		return FindCapabilities(ctx)
	}
	return kernelCapabilities()
}

// namespaceProbe keeps the answer of the first try that was not cut off by its context. why is empty if the try succeeded. The
// lock is held during a try, so that callers that come together start one process.
var namespaceProbe struct {
	// Mutex guards done and why. Its wait does not end with a context, and lasts namespaceProbeTime at most.
	sync.Mutex
	// done is true when why is the machine's answer, which holds for as long as this process lives.
	done bool
	why  string
}

// namespaceProbeTime bounds a try; a busy machine may take seconds.
const namespaceProbeTime = 20 * time.Second
