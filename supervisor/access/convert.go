package access

import "github.com/mcpvisor/mcpvisor/messages"

// ToProto returns the rules in the form in which they travel: each as its text.
func (r Rules) ToProto() *messages.PermissionsReply {
	return &messages.PermissionsReply{Managed: r.Managed.toProto(), Own: r.Own.toProto(), Hints: r.Hints}
}

func (s Set) toProto() *messages.PermissionSet {
	p := &messages.PermissionSet{Default: string(s.Default), DefaultSource: s.DefaultSource.toProto()}
	for _, rule := range s.Rules {
		p.Rules = append(p.Rules, &messages.PermissionRule{Verdict: string(rule.Verdict), Text: rule.Text, Source: rule.Source.toProto(),
			Unreadable: rule.Unreadable()})
	}
	return p
}

func (s Source) toProto() *messages.PermissionSource {
	return &messages.PermissionSource{File: s.File, Line: int32(s.Line), Col: int32(s.Col), Scope: string(s.Scope)}
}
