package scenario

// fault checks what can be said of a fault without its servers.
func (f *findings) fault(path string, x Fault) {
	if _, ok := faultNamed(x.Fault); !ok {
		f.add(path+".fault", instead(x.Fault, faultNames()), "there is no fault %s", quote(x.Fault))
		return
	}
	if x.Fault == "sleep" && len(x.On) > 0 {
		f.add(path+".on", "leave it out", "%s is about the whole machine", x.Fault)
	}
}
