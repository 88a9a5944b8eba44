package stdio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func init() {
	ordinary = append(ordinary, "TestAChildHasNoTerminal", "TestAProcessThatHidesIsNotRead", "TestDescriptorsAreWithheld")
	// typist tries what a server could do to the terminal of its manager. Its argument is the terminal's name.
	attempts["tty"] = func(string) error {
		fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	attempts["type"] = func(path string) error { return typeInto(path, unix.TIOCSTI) }
	attempts["paste"] = func(path string) error { return typeInto(path, unix.TIOCLINUX) }
	// The kernel looks at 32 bits of a request, and a filter that compares all 64 does not recognise this one.
	attempts["typeFar"] = func(path string) error { return typeInto(path, unix.TIOCSTI|1<<40) }
	attempts["listen"] = func(path string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	attempts["leads"] = func(string) error {
		sid, err := unix.Getsid(0)
		if err == nil && (sid != os.Getpid() || unix.Getpgrp() != os.Getpid()) {
			err = fmt.Errorf("process %d is in session %d and group %d", os.Getpid(), sid, unix.Getpgrp())
		}
		return err
	}
	// onTerminal is a manager with a controlling terminal, and one server that attempts what the argument says. What became of
	// it is written to descriptor 3.
	roles["onTerminal"] = func(arg string) {
		var plan struct {
			List      string
			Isolation *messages.Isolation
			Terminal  bool
		}
		err := json.Unmarshal([]byte(arg), &plan)
		if err == nil {
			cfg := asRole("attempts:" + plan.List)
			cfg.Isolation, cfg.Terminal = plan.Isolation, plan.Terminal
			r := &transporttest.Recorder{}
			if _, err = stdio.New(cfg).Dial(context.Background(), r); err == nil {
				for len(r.Messages()) == 0 {
					time.Sleep(time.Millisecond)
				}
				_, err = os.NewFile(3, "report").Write(r.Messages()[0])
			}
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(97)
		}
	}
	// environment reads that of the process whose number is the argument.
	attempts["environment"] = func(pid string) error {
		b, err := os.ReadFile("/proc/" + pid + "/environ")
		if err == nil && !strings.Contains(string(b), "=") {
			err = fmt.Errorf("it is empty")
		}
		return err
	}
	attempts["descriptor"] = func(fd string) error {
		n, err := strconv.Atoi(fd)
		if err == nil {
			_, err = unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		}
		return err
	}
	// withdrawn is a manager that does what a program with secrets does first, and that was given a descriptor.
	roles["withdrawn"] = func(arg string) {
		withdraw, arg, _ := strings.Cut(arg, ":")
		if withdraw == "yes" {
			if stdio.HideProcess() != nil || stdio.WithholdDescriptors() != nil {
				os.Exit(96)
			}
		}
		own := make([]byte, 64)
		n, _ := unix.Read(given, own) // it still has it
		r := &transporttest.Recorder{}
		cfg := asRole("attempts:environment " + fmt.Sprint(os.Getpid()) + "\ndescriptor " + fmt.Sprint(given))
		if arg != "" {
			cfg.Isolation = &messages.Isolation{}
			if err := json.Unmarshal([]byte(arg), cfg.Isolation); err != nil {
				os.Exit(95)
			}
		}
		if _, err := stdio.New(cfg).Dial(context.Background(), r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(97)
		}
		for len(r.Messages()) == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Printf("%s %s\n", own[:n], r.Messages()[0])
	}
}

// given is a descriptor that no program opens by itself.
const given = 40

// typeInto tries to put a character into a terminal's input.
func typeInto(path string, request uintptr) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = 2 // whatever it is: a filter answers before the kernel asks for a terminal
	} else {
		defer unix.Close(fd)
	}
	c := [2]byte{'x'}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&c))); errno != 0 {
		return errno
	}
	return nil
}

// terminal makes a pair of a terminal's ends.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	ours = os.NewFile(uintptr(fd), "ptmx")
	theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// onTerminal says what became of the attempts of a server whose manager has a terminal. {tty} in the list is its name.
func onTerminal(t *testing.T, plan map[string]any) map[string]string {
	t.Helper()
	_, theirs := terminal(t)
	plan["List"] = strings.ReplaceAll(plan["List"].(string), "{tty}", theirs.Name())
	arg, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	exe, _ := os.Executable()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"=onTerminal:"+string(arg))
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = theirs, os.Stderr, os.Stderr, []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	said := map[string]string{}
	if err := json.NewDecoder(r).Decode(&said); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	return said
}

// A server types nothing into the shell from which its manager was started: it has no terminal of its own to do that with.
// A helper that may ask on it has.
func TestAChildHasNoTerminal(t *testing.T) {
	said := onTerminal(t, map[string]any{"List": "tty\nleads"})
	expectAttempts(t, said, map[string]string{"tty": "no such device", "leads": ""})
	if os.Getuid() != 0 { // root types into any terminal that it can open
		said = onTerminal(t, map[string]any{"List": "type {tty}"})
		if said["type"] == "ok" {
			t.Error("it types into its manager's terminal")
		}
	}
	said = onTerminal(t, map[string]any{"List": "tty", "Terminal": true})
	expectAttempts(t, said, map[string]string{"tty": ""})
}

// runWithdrawn says what a server learns of a manager: the first word is what that could read from the descriptor that it was
// given, the rest what became of the server's attempts.
func runWithdrawn(t *testing.T, arg string) (own string, said map[string]string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString("mine")
	_ = w.Close()
	defer r.Close()
	exe, _ := os.Executable()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"=withdrawn:"+arg, "MY_TOKEN=of-the-person")
	cmd.ExtraFiles, cmd.Stderr = make([]*os.File, given-2), os.Stderr
	cmd.ExtraFiles[given-3] = r
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	own, text, _ := strings.Cut(string(out), " ")
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		t.Fatal(err)
	}
	return own, said
}

// Root reads what it likes.
func TestAProcessThatHidesIsNotRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("it is run as an ordinary user by TestAsAnOrdinaryUser")
	}
	_, said := runWithdrawn(t, "no:")
	expectAttempts(t, said, map[string]string{"environment": ""})
	_, said = runWithdrawn(t, "yes:")
	expectAttempts(t, said, map[string]string{"environment": "permission denied"})
	skipWithout(t, messages.Isolation{Network: messages.NetworkLoopback})
	// What is hidden can still make a network for a server.
	_, said = runWithdrawn(t, `yes:{"network": "loopback"}`)
	expectAttempts(t, said, map[string]string{"environment": "permission denied"})
}

func TestDescriptorsAreWithheld(t *testing.T) {
	for arg, want := range map[string]string{
		"no:": "", "yes:": "bad file descriptor",
		`no:{"noNewPrivileges": true}`: "bad file descriptor", // its launcher does it, and nothing of the manager changes
	} {
		own, said := runWithdrawn(t, arg)
		if own != "mine" {
			t.Errorf("%s: the manager itself read %q", arg, own)
		}
		expectAttempts(t, said, map[string]string{"descriptor": want})
	}
}
