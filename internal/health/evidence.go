package health

// evidence has the statements for and against Healthy that a status scan has found.
type evidence struct {
	trace *Trace
	whole Assessment // the worst statement about the whole object
	parts Assessment // the worst statement about a part of it
	soft  Assessment // the worst statement that counts only if no strong one says that the object works

	// strong means that a statement says that the whole object works.
	strong bool
	// weak means that a part of the object works, or that a count says so.
	weak bool

	rest  Assessment // the first statement that the object is idle; zero if there is none
	ended bool       // the object has run to its end
	stale bool       // a condition is about an earlier spec

	unclassified string // a phase or a state of the whole in words that have no class
	sentence     bool   // it is a sentence, which may even deny a strong statement
}

func newEvidence(trace *Trace) evidence {
	return evidence{trace: trace, whole: healthy, parts: healthy, soft: healthy}
}

// against adds a statement against Healthy, or that the object is idle. It is about a part of the object unless the path is empty.
func (e *evidence) against(path []string, a Assessment) {
	e.idleBy(a)
	e.traceAgainst(a)
	into := &e.whole
	if len(path) > 0 {
		into = &e.parts
	}
	if worse(a.Status, into.Status) {
		*into = a
	}
}

// softAgainst adds a statement that counts only if no strong one says that the object works.
func (e *evidence) softAgainst(a Assessment) {
	e.idleBy(a)
	e.traceAgainst(a)
	if worse(a.Status, e.soft.Status) {
		e.soft = a
	}
}

func (e *evidence) traceAgainst(a Assessment) {
	if e.trace != nil && (a.Status != Healthy || a.idle()) {
		e.trace.says(string(a.Status) + " " + a.Reason + ": " + a.Message)
	}
}

// proves adds that the whole object works.
func (e *evidence) proves() {
	e.strong = true
	e.trace.says("it works")
}

// suggests adds that a part of the object works, or that a count says so.
func (e *evidence) suggests() {
	e.weak = true
	e.trace.says("it seems to work")
}

// idleBy keeps the first statement that the object is idle.
func (e *evidence) idleBy(a Assessment) {
	if a.idle() && !e.rest.idle() {
		e.rest = a
	}
}

// worst returns the worst statement against Healthy.
func (e *evidence) worst() Assessment {
	a := e.whole
	if worse(e.parts.Status, a.Status) && !e.ended { // else the parts are failed attempts before the success
		a = e.parts
	}
	if worse(e.soft.Status, a.Status) && !e.strong {
		a = e.soft
	}
	return a
}

// works reports whether the statements for Healthy suffice if none is against it.
func (e *evidence) works() bool { return e.strong && !e.sentence || e.weak && e.unclassified == "" }
