package transports

import (
	"syscall"
	"time"
)

const guardianNeeded = false

func guardianAttributes() *syscall.SysProcAttr { return nil }

func ignoreSignals() {}

func endGroups(map[int]processIdentity, time.Duration) {}

func identifyProcess(int) processIdentity { return processIdentity{} }
