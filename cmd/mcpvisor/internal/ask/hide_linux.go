package ask

import "golang.org/x/sys/unix"

// getTermios and setTermios are the requests with which hideInput reads and changes the terminal on Linux.
const getTermios, setTermios = unix.TCGETS, unix.TCSETS
