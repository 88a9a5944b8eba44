// Package launcher starts a program after the process that becomes it has isolated itself. Linux and macOS offer most of
// isolation only to the process itself, and Go runs no code between fork and exec. So the process first executes this very
// program again, which performs the steps that package isolation has planned, and then executes the other program in its place:
// the same process, with the same id, group, parent and pipes.
//
//	l, err := launcher.Wrap(cmd, steps)   // cmd starts this program now
//	err = cmd.Start()
//	err = l.Finish(ctx)                   // the other program runs, or err says why it does not
//
// # How it fits
//
// Package stdio/internal/process calls Wrap, Start and Finish when a server's isolation needs it. The two processes talk through
// two pipes:
//
//	parent                              launcher
//	  Start ───── fork, exec ──────────> init: "launcher\n"
//	  Finish <─────────────────────────┘
//	    launchOrder (JSON) ────────────> performSteps, setLimit
//	    <──────── StepError, or ──────── exec of the program, which closes the pipe
//
// A program that links this package needs nothing in its main: the package's init becomes the launcher where it must. It does so
// only if the process has the name Name as its only argument, two pipes at descriptors 3 and 4, and no more rights than the
// process that started it. A program that can arrange that can start any program with those rights anyway.
//
// Guarantees:
//
//   - The program runs with every step done, or not at all: Finish says which step failed, and why.
//   - Arguments and environment of the program go through a pipe, after the launcher has written its first message; they are on
//     no command line but the program's own. The launcher itself has only a few variables of this process (PATH, HOME, those
//     that loader and runtime read), because any program of the user can read them, and because no variable of the program
//     (LD_PRELOAD) may act before the steps are done.
//   - When this process dies before the program runs, the launcher ends.
//
// Not promised: that the init functions of other packages of this program have no effect before. They run once more in the
// launcher.
package launcher
