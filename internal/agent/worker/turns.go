package worker

// turns implements [workqueue.Queue]. The groups of its keys take turns.
type turns[T comparable] struct {
	groupOf func(T) string
	waiting map[string][]T // by group, the oldest first
	order   []string       // the groups with keys; the first is next
	length  int
}

// Push adds a key to its group.
func (t *turns[T]) Push(key T) {
	group := t.groupOf(key)
	if len(t.waiting[group]) == 0 {
		t.order = append(t.order, group)
	}
	t.waiting[group] = append(t.waiting[group], key)
	t.length++
}

// Pop takes the oldest key of the next group. There must be one.
func (t *turns[T]) Pop() T {
	group := t.order[0]
	t.order = t.order[1:]
	key, rest := t.waiting[group][0], t.waiting[group][1:]
	if len(rest) > 0 {
		t.waiting[group] = rest
		t.order = append(t.order, group)
	} else {
		delete(t.waiting, group)
	}
	t.length--
	return key
}

// Touch has no effect: a key keeps its place.
func (t *turns[T]) Touch(T) {}

// Len is the number of keys.
func (t *turns[T]) Len() int { return t.length }
