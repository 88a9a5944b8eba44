//go:build !linux && !darwin && !windows

package ask

// hideInput cannot hide what is typed on this system, so that secrets must be given by flags or variables.
func hideInput(any) (show func(), ok bool) { return nil, false }
