package auth

import "container/list"

// lru is a map of limited size, which evicts the least recently used entry. It is not safe for concurrent use.
type lru[K comparable, V any] struct {
	size  int
	order *list.List // of *lruEntry, most recently used first
	byKey map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](size int) *lru[K, V] {
	return &lru[K, V]{size: size, order: list.New(), byKey: make(map[K]*list.Element)}
}

func (l *lru[K, V]) get(key K) (value V, ok bool) {
	element, ok := l.byKey[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(element)
	return element.Value.(*lruEntry[K, V]).value, true
}

func (l *lru[K, V]) put(key K, value V) {
	if element, ok := l.byKey[key]; ok {
		element.Value.(*lruEntry[K, V]).value = value
		l.order.MoveToFront(element)
		return
	}
	l.byKey[key] = l.order.PushFront(&lruEntry[K, V]{key, value})
	if l.order.Len() > l.size {
		l.removeElement(l.order.Back())
	}
}

func (l *lru[K, V]) remove(key K) {
	if element, ok := l.byKey[key]; ok {
		l.removeElement(element)
	}
}

// removeIf removes the values for which gone returns true.
func (l *lru[K, V]) removeIf(gone func(V) bool) {
	for element := l.order.Front(); element != nil; {
		next := element.Next()
		if gone(element.Value.(*lruEntry[K, V]).value) {
			l.removeElement(element)
		}
		element = next
	}
}

func (l *lru[K, V]) removeElement(element *list.Element) {
	delete(l.byKey, l.order.Remove(element).(*lruEntry[K, V]).key)
}
