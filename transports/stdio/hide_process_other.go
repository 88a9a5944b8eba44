//go:build !linux

package stdio

func hideProcess() error { return nil }
