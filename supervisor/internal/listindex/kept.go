package listindex

// A List is one list of a server in the form in which its reader keeps it: the gateway keeps its part of a list of agents.
type List interface {
	// IsSame reports whether another one was made of the same list.
	IsSame(other List) bool
	// Size returns the bytes of its definitions.
	Size() int
}

// keptLists are the lists of one server, by the method that asks for them.
type keptLists struct {
	owner    Owner
	byMethod map[string]keptList
	size     int
}

type keptList struct {
	list List
	size int
}

// KeepList remembers a list of a server as it was given to this owner, in the place of the one before. All of a server together may have
// 4 MiB of definitions; of a list that is too long nothing is kept.
func (x *Index) KeepList(server, method string, context Owner, list List) {
	x.mu.Lock()
	defer x.mu.Unlock()
	kept := x.kept[server]
	if kept == nil || !kept.owner.covers(context) {
		kept = &keptLists{owner: context, byMethod: map[string]keptList{}}
	}
	before, ok := kept.byMethod[method]
	if ok && before.list.IsSame(list) {
		return
	}
	now := keptList{list, list.Size()}
	kept.size -= before.size
	delete(kept.byMethod, method)
	if kept.size+now.size <= maxIndexBytes {
		kept.size += now.size
		kept.byMethod[method] = now
	}
	if x.kept == nil {
		x.kept = map[string]*keptLists{}
	}
	x.kept[server] = kept
}

// KeptList returns a list of a server as it was given last, nil if it was not, or was given to another owner than now.
func (x *Index) KeptList(server, method string, now Owner) List {
	x.mu.Lock()
	defer x.mu.Unlock()
	kept := x.kept[server]
	if kept == nil {
		return nil
	}
	if !kept.owner.covers(now) {
		delete(x.kept, server)
		return nil
	}
	return kept.byMethod[method].list
}
