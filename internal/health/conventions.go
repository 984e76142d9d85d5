package health

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// byConventions judges an object of a kind that is not known, by everything in its status. It is Healthy if something
// says so, and nothing says otherwise.
//
// Source: API conventions, "Typical status properties"; and what operators commonly write where there is no convention:
// phases, states, flags, errors and counts.
func byConventions(s *fields, scene Context) Assessment {
	if why := resting(s); why != "" {
		return rested(s, scene, why)
	}
	for _, name := range []string{"observedGeneration", "lastObservedGeneration", "reconciledGeneration"} {
		if _, isTable := s.value("status").(map[string]any); !isTable {
			break
		}
		observed, ok := s.generation("status", name)
		if generation, known := s.number("metadata", "generation"); ok && known && observed != generation {
			return notObserved(s) // a later one is of an object that was here before
		}
	}
	return newSurvey(s, scene).judge()
}

// resting returns the reason why an object is to do nothing; "" if it is not. What it says of its state may be of the
// time before.
//
// Source: spec.suspend of CronJobs and Flux, spec.paused of Deployments and Cluster API, and the annotations of the
// same names that operators read.
func resting(s *fields) string {
	spec, _ := s.value("spec").(map[string]any)
	for _, field := range []struct{ name, reason string }{
		{"suspend", "Suspended"},
		{"suspended", "Suspended"},
		{"paused", "Paused"},
		{"pause", "Paused"},
		{"hibernated", "Hibernated"},
		{"hibernate", "Hibernated"},
		{"stopped", "Stopped"},
		{"stop", "Stopped"},
		{"halted", "Halted"},
		{"shutdown", "Stopped"},
	} {
		if on := spec[field.name]; on == true || on == "true" || on == "yes" {
			return field.reason
		}
	}
	if on, ok := spec["running"].(bool); ok && !on || spec["runStrategy"] == "Halted" {
		return "Stopped"
	}
	for _, name := range []string{"state", "desiredState", "powerState"} {
		if text, ok := spec[name].(string); ok && signifies(text) == rest {
			return word(text, "Stopped")
		}
	}
	if text, ok := spec["managementState"].(string); ok && (strings.EqualFold(text, "unmanaged") || strings.EqualFold(text, "removed")) {
		return word(text, "Unmanaged")
	}
	if strategyRests(spec) {
		return "Paused"
	}
	return marked(s)
}

// strategyRests reports whether a rollout is to go no further.
func strategyRests(spec map[string]any) bool {
	for _, name := range []string{"strategy", "updateStrategy", "rolloutStrategy"} {
		strategy, _ := spec[name].(map[string]any)
		rolling, _ := strategy["rollingUpdate"].(map[string]any)
		if strategy["paused"] == true || rolling["paused"] == true {
			return true
		}
	}
	return false
}

// marked returns the reason why an object rests by its annotations or labels; "" if it does not.
func marked(s *fields) string {
	for _, where := range []string{"annotations", "labels"} {
		marks, _ := s.value("metadata", where).(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(marks)) {
			value, _ := marks[key].(string)
			if reason := restingMark(key, value); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// restingMark returns the reason why what has an annotation or a label rests.
func restingMark(key, value string) string {
	_, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return ""
	}
	name = strings.ToLower(strings.ReplaceAll(name, "-", ""))
	value = strings.ToLower(value)
	on := value == "" || value == "true"
	off := value == "disabled" || value == "false" || value == "skip"
	switch name {
	case "paused", "pause", "pausereconciliation", "pausereconcile", "reconcilepaused", "reconciliationpaused":
		if on {
			return "Paused"
		}
	case "pausedreplicas":
		return "Paused"
	case "suspend", "suspended":
		if on {
			return "Suspended"
		}
	case "reconcile", "reconciliation", "reconciliationloop", "reconcilepolicy", "managed":
		if off {
			return "Paused"
		}
	case "hibernation":
		if on || value == "on" {
			return "Hibernated"
		}
	}
	return ""
}

// rested judges what rests. What was wrong when it was laid to rest is told, and is not what it is judged by.
func rested(s *fields, scene Context, why string) Assessment {
	message := s.subject() + " is " + strings.ToLower(why)
	if before := newSurvey(s, scene).judge(); worse(before.Status, Reconciling) {
		message = quote(message, before.Message)
	}
	return verdict(Reconciling, why, message)
}

// survey is what is found in a status.
type survey struct {
	s     *fields
	scene Context
	kind  []string // the words of the kind's name

	worst, worstInside Assessment // what speaks against Healthy: of the whole, and of its parts
	soft               Assessment // what speaks against it if nothing else tells of the whole

	strong, weak bool   // something says that it works; weak if of a part, or by counting
	ended        bool   // it has run to its end
	strange      string // a phase or a state of the whole that is not known
	sentence     bool   // it is a sentence, which may say anything
	stale        bool   // a condition is about an earlier spec

	asked, isFinite bool // what finite has found

	keys map[string][]string // the words of keys
	left int                 // how many values may still be looked at
	full bool
}

// How much of a status is read. An object in etcd has up to some 1.5 MB.
const (
	mostValues = 50_000
	mostDepth  = 24
	mostKeys   = 10_000 // of which the words are remembered
)

func newSurvey(s *fields, scene Context) *survey {
	v := &survey{s: s, scene: scene, kind: split(s.kind.Kind), worst: healthy, worstInside: healthy, soft: healthy, left: mostValues, keys: map[string][]string{}}
	switch status := s.value("status").(type) {
	case map[string]any:
		v.table(nil, status)
		v.replicas(status)
	case string: // a few kinds have a word for a status
		v.says(nil, "status", status, status)
	case nil:
	default:
		s.note("status")
	}
	return v
}

// judge weighs what was found: the worse counts.
func (v *survey) judge() Assessment {
	a := v.worst
	if worse(v.worstInside.Status, a.Status) && !v.ended { // else these are tries that failed before it succeeded
		a = v.worstInside
	}
	if worse(v.soft.Status, a.Status) && !v.strong {
		a = v.soft
	}
	switch {
	case worse(a.Status, Unknown):
		return v.warned(a)
	case v.stale:
		return notObserved(v.s)
	case a.Status == Unknown:
		return a
	case v.full:
		return verdict(Unknown, "TooLarge", v.s.subject()+" has a status that is too large to be read")
	case !v.favoured():
		return v.nothing()
	case v.ended:
		return Assessment{Verdict: Verdict{Status: Healthy, Reason: Completed}}
	}
	return healthy
}

// favoured reports whether what says that it works is enough.
func (v *survey) favoured() bool { return v.strong && !v.sentence || v.weak && v.strange == "" }

// nothing judges what gives no signal.
func (v *survey) nothing() Assessment {
	message := v.s.subject() + " has no status that tells its health"
	if v.strange != "" {
		message = v.s.subject() + " has " + v.strange + ", which may mean anything"
	}
	if w := v.scene.Warning; w.Reason != "" {
		message = quote(message+"; its latest Warning is "+w.Reason, w.Message)
	}
	return verdict(Unknown, "NoSignal", message)
}

// recently is how long a Warning is evidence for what says of itself for ever that it is on its way.
const recently = 15 * time.Minute

// warned takes a Warning into account: what says of itself that it is on its way, does not tell since when, and is old,
// is not if there are Warnings about it.
func (v *survey) warned(a Assessment) Assessment {
	w := v.scene.Warning
	if a.Status != Reconciling || v.rests(a.Reason) || w.Reason == "" || v.scene.Now.Sub(w.Time) > recently {
		return a
	}
	a.Message = quote(a.Message+"; its latest Warning is "+w.Reason, w.Message)
	if created := v.s.created(); a.Since.IsZero() && !created.IsZero() && v.scene.Now.Sub(created) > convergence {
		a.Status = Unhealthy
	}
	return a
}

// against takes in what speaks against Healthy.
func (v *survey) against(path []string, a Assessment) {
	into := &v.worst
	if len(path) > 0 {
		into = &v.worstInside
	}
	if worse(a.Status, into.Status) {
		*into = a
	}
}

// name names the whole, or a part of it, in a sentence.
func (v *survey) name(path []string) string {
	if len(path) == 0 {
		return v.s.subject()
	}
	if len(path) > 4 {
		path = path[len(path)-4:]
	}
	return v.s.subject() + ": " + strings.TrimSuffix(quote(strings.Join(path, "."), ""), ":")
}

// young reports whether the object has just been made, and until when it is.
func (v *survey) young() (until time.Time, young bool) {
	created := v.s.created()
	until = created.Add(startup)
	return until, !created.IsZero() && v.scene.Now.Before(until)
}

// notYet judges what is not as it is to be: wrong, or on its way if it says so or is young.
func (v *survey) notYet(since time.Time, reason, fallback, message string) Assessment {
	if signifies(reason) == busy {
		return pending(v.scene, since, convergence, Unhealthy, word(reason, fallback), message)
	}
	if v.rests(reason) {
		return verdict(Reconciling, word(reason, fallback), message)
	}
	a := verdict(Unhealthy, word(reason, fallback), message)
	a.Since = since
	if until, young := v.young(); young && !fails(reason) {
		a.Status, a.Recheck = Reconciling, until
	}
	return a
}

// finite reports whether the object is of a kind that runs to its end: by its name, or because its status has a time
// at which it began or ended.
func (v *survey) finite() bool {
	if !v.asked {
		v.asked, v.isFinite = true, v.runsToItsEnd()
	}
	return v.isFinite
}

func (v *survey) runsToItsEnd() bool {
	has := func(words map[string]bool) bool {
		return slices.ContainsFunc(v.kind, func(w string) bool { return words[w] })
	}
	switch last := len(v.kind) - 1; {
	case has(repeated), last >= 0 && endless[v.kind[last]]:
		return false
	case last >= 0 && runs[v.kind[last]]: // a ClusterBackup
		return true
	case has(endless):
		return false
	case has(runs):
		return true
	}
	status, _ := v.s.value("status").(map[string]any)
	for _, name := range []string{
		"startTime", "startedAt", "startTimestamp", "startedTime", "completionTime", "completedAt", "completionTimestamp",
		"finishedAt", "finishTime", "endTime", "endedAt", "terminationTime",
	} {
		if _, ok := status[name]; ok {
			return true
		}
	}
	return false
}

// runs and endless are words in the names of kinds that run to their end, and that do not; repeated of those that make
// others run.
var (
	repeated = wordSet("cron schedule scheduled scaled")
	runs     = wordSet(`run job jobs workflow task backup restore migration experiment test build scan export import operation
		execution request upgrade download upload benchmark chaos playbook command analysis action process dump clone
		transfer sync switchover failover rebalance reboot rollback repair plan verification attempt session
		query stress check`)
	endless = wordSet(`policy template config location repository storage class pool queue
		controller operator cluster definition provider gateway service server deployment set store health`)
)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// rests reports whether a reason or a phase is a word for rest, perhaps with the kind that rests: Stopped and
// ClusterHibernated, not HeartbeatStopped.
func (v *survey) rests(text string) bool {
	words := split(text)
	return slices.ContainsFunc(words, func(w string) bool { return meansAlone(w) == rest }) && !slices.ContainsFunc(words, func(w string) bool {
		return meansAlone(w) != rest && !resters[w] && !general[w] && !summary[w] && !slices.Contains(v.kind, w)
	})
}

var resters = wordSet(`reconcile reconciliation reconciler deployment rollout by user manually spec in under for instance operator
	scaling autoscaling pausing suspending stopping hibernating or`)

// working judges what says that it is on its way, and perhaps since when. What runs to its end takes as long as it takes.
func (v *survey) working(since time.Time, reason, fallback, message string) Assessment {
	if v.finite() {
		a := verdict(Reconciling, word(reason, fallback), message)
		a.Since = since
		return a
	}
	if since.IsZero() {
		return v.undated(word(reason, fallback), message)
	}
	return pending(v.scene, since, convergence, Unhealthy, word(reason, fallback), message)
}

// patience is how long something may be on its way that does not tell since when, counted from the last news of it.
const patience = 24 * time.Hour

// undated judges what is on its way and does not tell since when. Only a spec that was never changed, or a word for the
// beginning, tells that it is so since the object was made.
func (v *survey) undated(reason, message string) Assessment {
	a := verdict(Reconciling, reason, message)
	generation, _ := whole(v.s.value("metadata", "generation"))
	if generation > 1 && !slices.ContainsFunc(split(reason), func(w string) bool { return beginnings[w] }) {
		return a
	}
	return v.until(a, patience, "a day")
}

var beginnings = wordSet("creating provisioning pending initializing initialising bootstrapping installing new preparing starting")

// until gives something on its way some time from the last news of it.
func (v *survey) until(a Assessment, limit time.Duration, spelt string) Assessment {
	from := v.news()
	if from.IsZero() || v.finite() {
		return a
	}
	if end := from.Add(limit); v.scene.Now.Before(end) {
		a.Recheck = end
		return a
	}
	a.Status = Unhealthy
	a.Message += ", for more than " + spelt
	if w := v.scene.Warning; w.Reason != "" && v.scene.Now.Sub(w.Time) <= recently {
		a.Message = quote(a.Message+"; its latest Warning is "+w.Reason, w.Message)
	}
	return a
}

// news returns the latest time that the object tells: when it was made, when a manager of its fields wrote, or one at
// the top of its status or of its conditions. Times to come do not count.
func (v *survey) news() time.Time {
	latest := v.s.created()
	if latest.IsZero() {
		return latest
	}
	take := func(in any) {
		table, _ := in.(map[string]any)
		for _, value := range table {
			if at, ok := moment(value); ok && at.After(latest) && !at.After(v.scene.Now) {
				latest = at
			}
		}
	}
	status, _ := v.s.value("status").(map[string]any)
	take(status)
	conditions, _ := status["conditions"].([]any)
	managers, _ := v.s.value("metadata", "managedFields").([]any)
	for _, in := range slices.Concat(conditions[:min(len(conditions), mostTimes)], managers[:min(len(managers), mostTimes)]) {
		take(in)
	}
	return latest
}

// mostTimes bounds in how many conditions, and in how many entries of managers, times are looked for.
const mostTimes = 100
