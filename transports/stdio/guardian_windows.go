package stdio

import "syscall"

// guardianNeeded is false: job objects end with this process. The functions below are never called with an effect.
const guardianNeeded = false

func guardianAttributes() *syscall.SysProcAttr { return nil }

func ignoreSignals() {}
