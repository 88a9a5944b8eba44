package ask

import "golang.org/x/sys/unix"

// getTermios and setTermios are the requests with which hideInput reads and changes the terminal on macOS.
const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA
