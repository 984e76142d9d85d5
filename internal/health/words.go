package health

import (
	"slices"
	"strings"
	"unicode"
)

// meaning is what a word in a status says.
type meaning int

const (
	unknown meaning = iota // a word that is not known
	neutral                // a known word that says nothing of health
	good                   // it works
	done                   // it has run to its end
	step                   // one step of the way is done, which says little of the whole
	busy                   // it is on its way
	rest                   // it rests because somebody wants it to
	bad                    // something is wrong
	mute                   // the status says that its writer does not know
)

// vocabulary has the words that controllers commonly write as phases, states and reasons, and of which they make the
// types of conditions. Composed words are read word by word.
//
// Source: "Typical status properties" of the API conventions for conditions; for phases and states the documentation
// of operators, since there is no convention.
var vocabulary = func() map[string]meaning {
	all := map[string]meaning{}
	for means, words := range lists {
		for w := range strings.FieldsSeq(words) {
			all[w] = means
		}
	}
	return all
}()

// lists are the words of the vocabulary by what they mean. No word is in two.
var lists = map[meaning]string{
	good: `ready running active healthy available bound ok okay up online green normal stable serving synced insync
			synchronized synchronised uptodate updated reconciled deployed established enabled connected attached valid
			accepted programmed compliant operational provisioned applied admitted promoted installed live working
			reachable resolved optimal elected mounted passed pass issued conformant routable usable sufficient satisfied
			streaming listening joined enforced responsive restored recovered clean fresh provided authenticated consistent
			intact offered open fine nominal alive permitted verified signed linked pulled`,
	done: `succeeded success successful successfully complete completed done finished ended`,
	step: `created initialized initialised configured registered scheduled validated started approved submitted detected
			selected allocated prepared adopted observed processed built rendered generated loaded found present
			assigned enqueued planned discovered imported exported leased stored indexed defined resized copied bootstrapped
			injected published`,
	busy: `pending progressing inprogress waiting queued new requested creating updating deleting terminating outofsync
			stale incomplete unsynced retry rollback rollout switchover failover awaiting unscheduled unbound behind required wait waits delayed postponed deferred`,
	rest: `suspended suspend paused pause hibernated hibernation hibernating stopped halted off disabled inactive sleeping
			asleep standby shutdown scaledtozero scaleddown quiesced maintenance frozen closed parked cordoned deactivated`,
	bad: `failed failure failures fail fails failing error errors errored erroneous err errs degraded unhealthy invalid red yellow
			critical crit faulted faulty fault broken lost down dead offline unavailable unreachable disconnected rejected denied
			aborted cancelled canceled timeout expired conflict conflicts conflicted conflicting orphan orphaned orphans
			noncompliant violated violation violations blocked stuck stalled missing notfound inconclusive misconfigured
			unsupported unauthorized unauthorised unauthenticated forbidden refused killed oomkilled exceeded impaired abnormal
			unstable backoff crash crashed crashing crashloop crashloopbackoff panic pressure warning warnings warn problem
			problems issue issues deadlock corrupt corrupted corruption flapping lagging dangling terminal recoverable
			irreconcilable unknownerror evicted preempted disrupted disruption fallback inaccessible insufficient unable cannot
			mismatch mismatched overloaded unresolved unrecoverable undefined outage exception ambiguous unprocessable
			unschedulable bad wrong incorrect incompatible poor leaking wedged frequent readonly dropped unready uncertain too
			inoperable nonoperational defunct terminated unmet incident alert alerting alerts firing infeasible
			evacuated splitbrain partially partial rolledback abort aborting severed`,
	mute: `unknown undetermined`,
	neutral: `idle none empty default primary secondary leader follower detached notapplicable notrequired notneeded
			notconfigured notenabled upgradeavailable updateavailable updatesavailable upgradesavailable deprecated
			migratable upgradeable nothing unused skipped omitted`,
}

// gone are the words of which nothing works any more, where they are the whole of a phase or a state.
var gone = map[string]bool{
	"failed": true, "failure": true, "crashloopbackoff": true, "crashloop": true, "down": true, "dead": true, "lost": true,
	"offline": true, "faulted": true, "red": true, "broken": true, "unavailable": true,
}

// nouns end like what is going on, and are not.
var nouns = map[string]meaning{
	"running": good, "serving": good, "working": good, "listening": good, "streaming": good, "operating": good,
	"functioning": good, "following": neutral, "leading": neutral, "existing": neutral, "archiving": good, "balancing": neutral,
	"replicating": good, "logging": neutral, "monitoring": neutral, "networking": neutral, "routing": neutral,
	"peering": neutral, "sharing": neutral, "binding": neutral, "mapping": neutral, "being": busy, "string": neutral,
	"ring": neutral, "king": neutral, "thing": neutral, "ping": neutral, "polling": neutral, "tracking": neutral,
	"caching": neutral, "tracing": neutral, "autoscaling": neutral, "scaling": neutral, "encoding": neutral, "failing": bad,
	"matching": neutral, "during": neutral, "according": neutral, "spring": neutral, "accepting": good, "exceeding": bad,
	"staging": neutral, "using": neutral, "setting": busy, "owning": neutral, "billing": neutral, "pricing": neutral,
	"warning": bad, "missing": bad, "dangling": bad, "lagging": bad, "conflicting": bad, "crashing": bad, "flapping": bad,
	"alerting": bad, "firing": bad, "leaking": bad, "hibernating": rest, "sleeping": rest, "nothing": neutral, "peaking": neutral,
}

// joined are words that belong together.
var joined = strings.NewReplacer(
	" up to date ", " uptodate ", " in progress ", " inprogress ", " in sync ", " insync ", " out of sync ", " outofsync ",
	" out of date ", " stale ", " back off ", " backoff ", " crash loop ", " crashloop ", " timed out ", " timeout ",
	" time out ", " timeout ", " not found ", " notfound ", " not applicable ", " notapplicable ", " not required ",
	" notrequired ", " not needed ", " notneeded ", " not configured ", " notconfigured ", " not enabled ", " notenabled ",
	" upgrade available ", " upgradeavailable ", " update available ", " updateavailable ",
	" updates available ", " updatesavailable ", " upgrades available ", " upgradesavailable ",
	" scaled to zero ", " scaledtozero ", " read only ", " readonly ", " requires approval ", " pending ",
	" split brain ", " splitbrain ", " shut down ", " shutdown ", " scaled down ", " scaleddown ", " log in ", " login ",
	" stand by ", " standby ", " roll back ", " rollback ", " rolled back ", " rolledback ", " roll out ", " rollout ", " fail over ", " failover ",
	" switch over ", " switchover ", " available replicas ", " replicas available ",
	" in active ", " inactive ", " un healthy ", " unhealthy ", " on line ", " online ", " off line ", " offline ",
	" up and running ", " running ", " at latest known ", " uptodate ",
)

// longestWord bounds what is read of a word; a longer text is a sentence.
const longestWord = 96

// split returns the words of a composed word, or of a short sentence, in lower case: "CrashLoopBackOff" has
// "crashloop" and "backoff".
func split(text string) []string {
	plain := spaced(text)
	words := strings.Fields(plain)
	if len(words) < 2 {
		return words
	}
	words = strings.Fields(joined.Replace(joined.Replace(plain))) // twice, since words share the spaces between them
	out := words[:0]
	for _, w := range words {
		if n := len(out); n > 0 && particles[w] && strings.HasSuffix(out[n-1], "ing") { // scaling up, rolling out
			out[n-1] = "ongoing"
			continue
		}
		out = append(out, w)
	}
	return out
}

// spaced writes the words of a text in lower case, with a space before and after each.
func spaced(text string) string {
	if len(text) > longestWord {
		text = text[:longestWord]
	}
	var b strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			if r != '\'' {
				b.WriteByte(' ')
			}
			continue
		}
		if i > 0 && begins(runes, i) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return " " + strings.Join(strings.Fields(b.String()), " ") + " "
}

// begins reports whether a word begins within a composed one.
func begins(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) {
		return false
	}
	prev := runes[i-1]
	return !unicode.IsUpper(prev) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

var particles = map[string]bool{"up": true, "down": true, "out": true, "in": true, "back": true, "over": true, "off": true}

// stems tell the meaning of words by their beginnings.
var stems = []struct {
	stem  string
	means meaning
}{
	{"fail", bad},
	{"error", bad},
	{"degrad", bad},
	{"corrupt", bad},
	{"invalid", bad},
	{"reject", bad},
	{"unhealth", bad},
	{"crash", bad},
	{"misconfig", bad},
	{"mismatch", bad},
	{"timeout", bad},
	{"unavail", bad},
	{"unreach", bad},
}

// meansAlone returns the meaning of one word.
func meansAlone(w string) meaning {
	if m, ok := nouns[w]; ok {
		return m
	}
	if m, ok := vocabulary[w]; ok {
		return m
	}
	for _, s := range stems {
		if strings.HasPrefix(w, s.stem) {
			return s.means
		}
	}
	if rest, ok := strings.CutPrefix(w, "un"); ok {
		if m := vocabulary[rest]; m == good || m == done {
			return bad
		}
	}
	if strings.HasSuffix(w, "ing") && len(w) > 5 {
		return busy
	}
	return unknown
}

// meanings returns what the words of a text mean one by one, with what negates them.
func meanings(words []string) []meaning {
	out := make([]meaning, 0, len(words))
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case negates(w):
			if i+1 == len(words) {
				if w != "zero" && w != "0" {
					out = append(out, bad)
				}
				continue
			}
			i++
			out = append(out, negated(meansAlone(words[i]), w))
		default:
			out = append(out, meansAlone(w))
		}
	}
	return out
}

func negates(w string) bool {
	switch w {
	case "not", "non", "never", "isnt", "arent", "wasnt", "no", "without", "zero", "0":
		return true
	}
	return false
}

func negated(m meaning, by string) meaning {
	switch m {
	case good, mute:
		return bad
	case done, step:
		return busy
	case bad:
		return good
	case busy, rest, neutral:
		return neutral
	case unknown:
	}
	if by == "not" || by == "isnt" || by == "never" || by == "non" {
		return bad
	}
	return unknown
}

// signifies returns what a phase, a state or a reason says: the worst of its words.
func signifies(text string) meaning {
	if strings.TrimSpace(text) == "" {
		return neutral
	}
	has := [mute + 1]bool{}
	for _, m := range meanings(split(text)) {
		has[m] = true
	}
	for _, m := range []meaning{bad, busy, rest, mute, done, good, step, neutral} {
		if has[m] {
			return m
		}
	}
	return unknown
}

// absent are the bad words that are also said of what is not there yet.
var absent = map[string]bool{
	"unavailable": true, "missing": true, "notfound": true, "unready": true, "insufficient": true, "unmet": true, "unresolved": true,
	"partially": true, "partial": true, "warning": true, "recoverable": true, "unreachable": true, "disconnected": true, "blocked": true,
}

// fails reports whether a text tells of a failure, and not only of what is not there yet.
func fails(text string) bool {
	words := split(text)
	for i, w := range words {
		if meansAlone(w) == bad && !absent[w] && (i == 0 || !negates(words[i-1])) {
			return true
		}
	}
	return false
}

// polarity returns what it says that a condition, or a flag, of a name is true: good if all is well then, bad if
// something is wrong, busy, or rest. The last word of a name that is known counts most, as in ReconciliationFailed or
// InstallingReady; one of anything bad else.
func polarity(name string) meaning {
	if at := strings.LastIndexByte(name, '/'); at >= 0 { // a prefix
		name = name[at+1:]
	}
	words := split(name)
	all := meanings(words)
	if len(all) == 0 {
		return unknown
	}
	if words[0] == "no" && all[0] == unknown { // NoPodsMatched
		return bad
	}
	switch last := all[len(all)-1]; last {
	case good, done, bad, busy, rest:
		return last
	case neutral:
		return neutral
	case unknown, step, mute:
	}
	for _, m := range []meaning{bad, busy, rest, done, good, step, neutral} {
		if slices.Contains(all, m) {
			return m
		}
	}
	return unknown
}

// word makes a reason of what a controller wrote for one: one word in CamelCase.
func word(text, fallback string) string {
	if text == "" {
		return fallback
	}
	if len(text) <= longestWord && unicode.IsUpper(rune(text[0])) && strings.IndexFunc(text, notCamel) < 0 &&
		(len(text) <= 3 || strings.ToUpper(text) != text) {
		return text
	}
	if c := camel(text); c != "" {
		return c
	}
	return fallback
}

func notCamel(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// camel writes the first words of a text as one.
func camel(text string) string {
	if len(text) > longestWord {
		text = text[:longestWord]
	}
	const most = 6
	shout := len(text) > 4 && text == strings.ToUpper(text)
	var b strings.Builder
	words := 0
	for part := range strings.FieldsFuncSeq(text, notCamel) {
		if shout || part == strings.ToUpper(part) && len(part) > 3 {
			part = strings.ToLower(part)
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		if words++; words == most {
			break
		}
	}
	out := b.String()
	if out != "" && unicode.IsDigit(rune(out[0])) {
		return "Code" + out
	}
	return out
}
