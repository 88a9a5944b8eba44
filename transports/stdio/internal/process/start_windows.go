package process

import (
	"context"
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// processAttributes starts the child suspended, because it must be in its job object before it can start anything itself.
func processAttributes(*Spec) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
		HideWindow:    true,
	}
}

// launchChild starts the child on any thread: on Linux a child dies with the thread that started it, here it does not.
func launchChild(ctx context.Context, start func() error) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return func() {}, start()
}

// jobGroup is a job object. The system ends everything in it when its last handle is closed, and it closes this process's handle
// when this process is killed: no guardian is needed.
type jobGroup struct {
	job windows.Handle
	pid uint32
}

// newProcessGroup puts the suspended child into a new job and lets it run.
func newProcessGroup(p *os.Process) (Group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	// The child is suspended until resumeProcess: what it starts is in the job from its beginning.
	g := &jobGroup{job: job, pid: uint32(p.Pid)}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			// The end of this process closes the handle, and so ends the children.
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		e := p.WithHandle(func(h uintptr) { err = windows.AssignProcessToJobObject(job, windows.Handle(h)) })
		err = errors.Join(err, e)
	}
	if err == nil {
		err = resumeProcess(g.pid)
	}
	// A child outside of the job could not be ended with all that it starts; the caller kills it.
	if err != nil {
		g.close()
		return nil, os.NewSyscallError("job object", err)
	}
	return g, nil
}

// resumeProcess lets the one thread of a suspended process run. The API finds threads only by a walk over those of all processes.
func resumeProcess(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(all) }()
	// The API demands the size of the structure in its first field, to tell versions apart.
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	resumed := false
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		// The snapshot has the threads of every process.
		if entry.OwnerProcessID != pid {
			continue
		}
		h, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(h)
		_ = windows.CloseHandle(h)
		if err != nil {
			return err
		}
		resumed = true
	}
	if !resumed {
		return errors.New("the new process has no thread")
	}
	return nil
}

// Terminate sends CTRL_BREAK, which reaches the group only if it shares our console.
func (g *jobGroup) Terminate() { _ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.pid) }

// Kill ends every process of the job with exit code 1.
func (g *jobGroup) Kill() { _ = windows.TerminateJobObject(g.job, 1) }

// close closes the last handle of the job, which ends what is still in it.
func (g *jobGroup) close() { _ = windows.CloseHandle(g.job) }

// HasMembers asks the system for the number of processes in the job. An error counts as none.
func (g *jobGroup) HasMembers() bool {
	var info struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, which package windows does not declare
		userTime, kernelTime, periodUserTime, periodKernelTime    int64
		pageFaults, processes, activeProcesses, limitTerminations uint32
	}
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.activeProcesses > 0
}

// hasLivingMembers is HasMembers, because Windows has no zombies.
func (g *jobGroup) hasLivingMembers() bool { return g.HasMembers() }

// AwaitExit returns when the child has ended, and closes exited. The child's id stays taken while the handle is open.
func (p *Process) AwaitExit() {
	defer close(p.Exited)
	_ = p.cmd.Wait()
}

// waitStatus returns the status that AwaitExit has taken.
func (p *Process) waitStatus() *os.ProcessState { return p.cmd.ProcessState }

// isResourceShortage reports whether this machine has run out of memory, handles or processes, which passes by itself.
func isResourceShortage(err error) bool {
	return errors.Is(err, windows.ERROR_NOT_ENOUGH_MEMORY) || errors.Is(err, windows.ERROR_COMMITMENT_LIMIT) ||
		errors.Is(err, windows.ERROR_NO_SYSTEM_RESOURCES) || errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES) ||
		errors.Is(err, windows.ERROR_NO_PROC_SLOTS)
}

// isTextBusy reports whether another process writes the program's file.
func isTextBusy(err error) bool { return errors.Is(err, windows.ERROR_SHARING_VIOLATION) }

// isUnusableProgram reports whether the file is no program for this machine, or a directory.
func isUnusableProgram(err error) bool {
	return errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) || errors.Is(err, windows.ERROR_DIRECTORY)
}
