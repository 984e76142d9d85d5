package reporter

import "maps"

// sizes returns how much the reporter holds, for tests that look for leaks.
func (r *Reporter) sizes() map[string]int {
	out := map[string]int{"transitions": r.transitions.size()}
	maps.Copy(out, r.attributed.sizes())
	maps.Copy(out, r.events.aboutUnknown.sizes())
	maps.Copy(out, r.informers.Sizes())
	maps.Copy(out, r.assessor.Sizes())
	return out
}

// sizes returns how much is recorded, for tests that look for leaks.
func (a *attributedObjects) sizes() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return map[string]int{"names with attributed objects": len(a.byName), "recorded objects": len(a.recorded)}
}

// sizes returns how much is recorded, for tests that look for leaks.
func (e *unknownObjectEvents) sizes() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return map[string]int{"Events about unknown objects": len(e.instances), "instances with Events about unknown objects": len(e.names)}
}

func (t *transitions) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.last)
}

func (q *queues) len() int {
	return q.objects.Len() + q.events.Len() + q.longEvents.Len() + q.statuses.Len()
}
