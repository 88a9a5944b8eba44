package ask

import "golang.org/x/sys/windows"

// hideInput stops the console s from showing what is typed, until the caller calls show. ok is false if s is no console, or its
// mode cannot be changed; the caller must not read a secret then.
func hideInput(s any) (show func(), ok bool) {
	f, ok := s.(interface{ Fd() uintptr })
	if !ok {
		return nil, false
	}
	console := windows.Handle(f.Fd())
	var before uint32
	if err := windows.GetConsoleMode(console, &before); err != nil {
		return nil, false
	}
	if err := windows.SetConsoleMode(console, before&^windows.ENABLE_ECHO_INPUT); err != nil {
		return nil, false
	}
	return func() { _ = windows.SetConsoleMode(console, before) }, true // if this fails the console is gone
}
