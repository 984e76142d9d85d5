package health

import (
	"slices"
	"strings"
	"unicode"
)

// meaning is the class of a word in a status.
type meaning int

const (
	unclassified meaning = iota // the word is in no class
	neutral                     // the word is not about health
	good                        // it works
	done                        // it has run to its end

	// step means that one step of several is done. This says little about the whole.
	step
	busy        // work is under way
	rest        // somebody suspended it
	bad         // something is wrong
	unknownWord // the writer of the status does not know

	meanings = iota // the number of classes
)

// bySeverity orders the meanings of the words in a text. The first that is there is the meaning of the text.
var bySeverity = []meaning{bad, busy, rest, unknownWord, done, good, step, neutral}

// lexicon is a set of words.
type lexicon map[string]struct{}

// wordGroup has words of a lexicon, separated by spaces, and the reason why they are in it.
type wordGroup struct{ reason, words string }

func newLexicon(groups ...wordGroup) lexicon {
	l := lexicon{}
	for _, g := range groups {
		for w := range strings.FieldsSeq(g.words) {
			l[w] = struct{}{}
		}
	}
	return l
}

func (l lexicon) has(word string) bool {
	_, ok := l[word]
	return ok
}

func (l lexicon) hasAny(words []string) bool { return slices.ContainsFunc(words, l.has) }

// vocabulary has the meaning of each word of the classes.
var vocabulary = func() map[string]meaning {
	all := map[string]meaning{}
	for means, words := range classes {
		for w := range words {
			all[w] = means
		}
	}
	return all
}()

// maxReadText bounds how much is read of a text, in bytes. A longer text is a sentence.
const maxReadText = 96

// splitWords returns the words of a composed word or a short sentence, in lower case: "CrashLoopBackOff" has "crashloop"
// and "backoff".
func splitWords(text string) []string {
	plain := spaced(text)
	words := strings.Fields(plain)
	if len(words) < 2 {
		return words
	}
	words = strings.Fields(compounds.Replace(compounds.Replace(plain))) // twice, because neighbours share a space
	out := words[:0]
	for _, w := range words {
		if n := len(out); n > 0 && particles.has(w) && strings.HasSuffix(out[n-1], "ing") {
			out[n-1] = "ongoing"
			continue
		}
		out = append(out, w)
	}
	return out
}

// lastWord returns the last of some words; empty if there are none.
func lastWord(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// spaced writes the words of a text in lower case, with a space before and after each.
func spaced(text string) string {
	if len(text) > maxReadText {
		text = text[:maxReadText]
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
		if i > 0 && startsWord(runes, i) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return " " + strings.Join(strings.Fields(b.String()), " ") + " "
}

// startsWord reports whether a word of a composed word starts at an index after the first.
func startsWord(runes []rune, i int) bool {
	if !unicode.IsUpper(runes[i]) {
		return false
	}
	prev := runes[i-1]
	return !unicode.IsUpper(prev) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// classifyWord returns the meaning of one word: by its class, else by its stem, else by its form.
func classifyWord(w string) meaning {
	if m, ok := vocabulary[w]; ok {
		return m
	}
	if slices.ContainsFunc(stems, func(stem string) bool { return strings.HasPrefix(w, stem) }) {
		return bad
	}
	if positive, ok := strings.CutPrefix(w, "un"); ok {
		if m := vocabulary[positive]; m == good || m == done {
			return bad
		}
	}
	if strings.HasSuffix(w, "ing") && len(w) > 5 {
		return busy
	}
	return unclassified
}

// classifyEach returns the meanings of the words of a text. A word and its negation have one meaning together.
func classifyEach(words []string) []meaning {
	out := make([]meaning, 0, len(words))
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case !negations.has(w):
			out = append(out, classifyWord(w))
		case i+1 < len(words):
			i++
			out = append(out, negate(classifyWord(words[i]), w))
		case w != "zero" && w != "0":
			out = append(out, bad)
		}
	}
	return out
}

// negate returns the meaning of a word behind a negation.
func negate(m meaning, negation string) meaning {
	switch m {
	case good, unknownWord:
		return bad
	case done, step:
		return busy
	case bad:
		return good
	case busy, rest, neutral:
		return neutral
	case unclassified:
	}
	if strictNegations.has(negation) {
		return bad
	}
	return unclassified
}

// classify returns the meaning of a phase, a state or a reason: the most severe of its words.
func classify(text string) meaning {
	if strings.TrimSpace(text) == "" {
		return neutral
	}
	words := splitWords(text)
	if isActivity(words) {
		return busy
	}
	return mostSevere(classifyEach(words))
}

// isActivity reports whether some words are one that is an activity alone, and a subject beside others: Scaling, but ScalingLimited.
func isActivity(words []string) bool { return len(words) == 1 && words[0] == "scaling" }

func mostSevere(all []meaning) meaning {
	var has [meanings]bool
	for _, m := range all {
		has[m] = true
	}
	for _, m := range bySeverity {
		if has[m] {
			return m
		}
	}
	return unclassified
}

// reportsFailure reports whether a text has a bad word other than those for an object that is still being set up.
func reportsFailure(text string) bool {
	words := splitWords(text)
	for i, w := range words {
		if classifyWord(w) == bad && !notYetFaults.has(w) && (i == 0 || !negations.has(words[i-1])) {
			return true
		}
	}
	return false
}

// complains reports whether a message has a plain fault or something that is not as it should be.
func complains(message string) bool {
	words := splitWords(message)
	for i, w := range words {
		switch {
		case i > 0 && negations.has(words[i-1]):
		case plainFaults.has(w), w == "missing", w == "cannot", w == "unable":
			return true
		case w == "not" && i+1 < len(words) && !slices.Contains([]string{"necessary", "be", "have"}, words[i+1]) &&
			negate(classifyWord(words[i+1]), w) != good:
			return true
		}
	}
	return false
}

// deniesSubject reports whether a reason says that something is absent, other than the subject of a condition, whose
// words are given: NoDrift of a condition Drift is no complaint.
func deniesSubject(reason string, subject []string) bool {
	words := splitWords(reason)
	if len(words) < 2 || words[0] != "no" && words[0] != "not" {
		return false
	}
	return !slices.Contains(subject, words[1]) && negate(classifyWord(words[1]), "not") == bad
}

// polarity returns what it means that a condition or a flag is true. Its last classified word decides, as in
// ReconciliationFailed or InstallingReady, else the most severe of its words.
func polarity(name string) meaning {
	if at := strings.LastIndexByte(name, '/'); at >= 0 { // a prefix
		name = name[at+1:]
	}
	words := splitWords(name)
	all := classifyEach(words)
	switch {
	case len(all) == 0:
		return unclassified
	case isActivity(words):
		return busy
	}
	if words[0] == "no" && all[0] == unclassified { // NoPodsMatched
		return bad
	}
	switch last := all[len(all)-1]; last {
	case good, done, bad, busy, rest, neutral:
		return last
	case unclassified, step, unknownWord:
	}
	return mostSevere(slices.DeleteFunc(all, func(m meaning) bool { return m == unknownWord }))
}
