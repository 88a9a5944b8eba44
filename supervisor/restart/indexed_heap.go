package restart

import "container/heap"

// indexedHeap is a heap whose items know their place, so that a request in the middle can be removed without a search.
type indexedHeap[T any] struct {
	items    []T
	less     func(a, b T) bool
	setIndex func(item T, index int) // index is -1 when the item leaves the heap
}

func (p *indexedHeap[T]) push(item T)   { heap.Push((*heapAdapter[T])(p), item) }
func (p *indexedHeap[T]) remove(i int)  { heap.Remove((*heapAdapter[T])(p), i) }
func (p *indexedHeap[T]) fix(i int)     { heap.Fix((*heapAdapter[T])(p), i) }
func (p *indexedHeap[T]) isEmpty() bool { return len(p.items) == 0 }
func (p *indexedHeap[T]) top() T        { return p.items[0] }

// heapAdapter gives an indexedHeap the methods that container/heap requires, which its own users should not see.
type heapAdapter[T any] indexedHeap[T]

func (o *heapAdapter[T]) Len() int           { return len(o.items) }
func (o *heapAdapter[T]) Less(i, j int) bool { return o.less(o.items[i], o.items[j]) }

func (o *heapAdapter[T]) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	o.setIndex(o.items[i], i)
	o.setIndex(o.items[j], j)
}

// Push appends an item and notes its place.
func (o *heapAdapter[T]) Push(x any) {
	item := x.(T)
	o.items = append(o.items, item)
	o.setIndex(item, len(o.items)-1)
}

// Pop removes the last item, to which container/heap has moved the one that leaves.
func (o *heapAdapter[T]) Pop() any {
	last := len(o.items) - 1
	item := o.items[last]
	var none T
	o.items[last] = none // an item that has left may be collected
	o.items = o.items[:last]
	o.setIndex(item, -1)
	return item
}
