// Package launcher starts a program after the process that becomes it has isolated itself: Linux and macOS offer most of
// isolation only to the process itself, and Go runs no code between fork and exec. So the process is first this very
// program again, which does what package isolation has planned and then executes the other one in its place: the same
// process, with the same id, group, parent and pipes.
//
//	l, err := launcher.Wrap(cmd, steps)   // cmd starts this program now
//	err = cmd.Start()
//	err = l.Finish(ctx)                   // the other program runs, or what kept it from that
//
// A program that links this package needs nothing in its main: the package's init takes over where it is to. It does so
// only if the process has the name Name as its only argument, two pipes at descriptors 3 and 4, and no more rights than who
// started it. A program that can arrange that can start any program with those rights anyway.
//
// Guarantees:
//
//   - The program runs with every step done, or not at all: Finish says which step failed, and why.
//   - Arguments and environment of the program travel through a pipe, after the launcher has said that it is one; they are on
//     no command line but the program's own. The launcher itself has a few variables of this process (PATH, HOME,
//     what loader and runtime read), because any program of the user can read them, and nothing that the
//     program was given (LD_PRELOAD) acts before the steps are done.
//   - When this process dies before the program runs, the launcher ends.
//
// Not promised: that the init functions of other packages of this program did nothing before. They run once more.
package launcher
