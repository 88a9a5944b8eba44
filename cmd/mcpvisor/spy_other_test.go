//go:build !linux

package main

func spy() {}
