package restart

import "container/heap"

// pile is a heap whose items know where they are, so that one in the middle can be taken out.
type pile[T any] struct {
	items []T
	less  func(a, b T) bool
	moved func(item T, index int) // index is -1 when the item leaves
}

func (p *pile[T]) push(item T)  { heap.Push((*ordered[T])(p), item) }
func (p *pile[T]) remove(i int) { heap.Remove((*ordered[T])(p), i) }
func (p *pile[T]) fix(i int)    { heap.Fix((*ordered[T])(p), i) }
func (p *pile[T]) empty() bool  { return len(p.items) == 0 }
func (p *pile[T]) top() T       { return p.items[0] }

// ordered is the pile as container/heap wants it.
type ordered[T any] pile[T]

func (o *ordered[T]) Len() int           { return len(o.items) }
func (o *ordered[T]) Less(i, j int) bool { return o.less(o.items[i], o.items[j]) }

func (o *ordered[T]) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	o.moved(o.items[i], i)
	o.moved(o.items[j], j)
}

func (o *ordered[T]) Push(x any) {
	item := x.(T)
	o.items = append(o.items, item)
	o.moved(item, len(o.items)-1)
}

func (o *ordered[T]) Pop() any {
	last := len(o.items) - 1
	item := o.items[last]
	var none T
	o.items[last] = none // what left may be collected
	o.items = o.items[:last]
	o.moved(item, -1)
	return item
}
