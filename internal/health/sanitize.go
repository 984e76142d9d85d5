package health

import (
	"regexp"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// How long what others wrote may be in a message, in bytes: words, and names.
const (
	maxWords = 300
	maxName  = 160
)

// What differs from pod to pod in the words of a kubelet or a runtime: verdicts on pods that fail for the same cause are
// to be equal.
var (
	address   = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-fA-F]*:[0-9a-fA-F:.]+\]`)
	identity  = regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	token     = regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}\b`)
	localPort = regexp.MustCompile(`IP:\d+->IP:`)
)

// wordsOf returns what somebody says of a pod, in one line of bounded length and without what names just this pod.
func sanitizeMessage(pod *corev1.Pod, words string) string {
	words = truncate(words, 8*maxWords) // before it costs anything
	words = strings.Join(strings.Fields(words), " ")
	words = anonymize(pod, words)
	words = identity.ReplaceAllString(words, "ID")
	words = address.ReplaceAllString(words, "IP")
	words = localPort.ReplaceAllString(words, "IP->IP:")
	words = token.ReplaceAllString(words, "kube-api-access")
	return truncate(words, maxWords)
}

// uidLength is how long a UID is: what is shorter may be a part of a word.
const uidLength = 36

// randomLength is how many characters the API server adds to a generateName.
const randomLength = 5

// anonymous replaces a pod's name and UID. A name that ends by chance is nothing else's, and is replaced wherever it
// stands, as in that of a claim that was made for the pod. Any other may be a part of another name, and one without a
// hyphen an ordinary word: it is replaced where it stands whole, and is not said to be of something else.
//
// Source: metadata.generateName, ObjectMeta; spec.volumes[].ephemeral, "the PVC name is <pod name>-<volume name>".
func anonymize(pod *corev1.Pod, words string) string {
	if len(pod.UID) == uidLength {
		words = strings.ReplaceAll(words, string(pod.UID), "POD")
	}
	random, generated := strings.CutPrefix(pod.Name, pod.GenerateName)
	switch {
	case pod.Name == "":
	case pod.GenerateName != "" && generated && len(random) == randomLength:
		words = strings.ReplaceAll(words, pod.Name, "POD")
	case strings.Contains(pod.Name, "-"):
		words = replaceWhole(words, pod.Name, "POD")
	}
	return words
}

// ofOther is what stands before the name of something that is no pod: `secret "`.
var otherKindBefore = regexp.MustCompile(`(?i)\b(?:secrets?|configmaps?|serviceaccounts?|persistentvolumeclaims?|persistentvolumes?|claims?|volumes?|nodes?|images?|containers?|services?|class|classes) "$`)

// claimOf is what stands before the pod's name in that of a claim that a StatefulSet made for it.
var claimBefore = regexp.MustCompile(`(?i)\bpersistentvolumeclaim "[a-z0-9.-]+-$`)

// replaceWhole replaces a name where it is no part of a longer one, and not that of something else.
func replaceWhole(text, name, with string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, name)
		if !found {
			return out.String() + text
		}
		whole := !endsInName(out.String()+before) && !startsInName(after) && !otherKindBefore.MatchString(before) ||
			strings.HasPrefix(after, `"`) && claimBefore.MatchString(before)
		out.WriteString(before)
		if whole {
			out.WriteString(with)
		} else {
			out.WriteString(name)
		}
		text = after
	}
}

func isNameByte(b byte) bool {
	return b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func endsInName(text string) bool {
	return text != "" && (isNameByte(text[len(text)-1]) || text[len(text)-1] == '.')
}

// startsInName reports whether a text goes on with a name. A full stop belongs to one if more follows.
func startsInName(text string) bool {
	text = strings.TrimPrefix(text, ".")
	return text != "" && isNameByte(text[0])
}

// triedPod is how a controller begins to tell of a pod that was not admitted.
var triedPod = regexp.MustCompile(`^(?:Error creating: )?pods "[^"]*" is `)

// wordsOfMany returns what a controller says of pods that it makes, in one line of bounded length. Names of pods that
// it did not make differ from try to try.
func sanitizeControllerMessage(words string) string {
	words = strings.Join(strings.Fields(truncate(words, 8*maxWords)), " ")
	return truncate(triedPod.ReplaceAllString(words, "pods are "), maxWords)
}

// bounded cuts a text to a length in bytes, at a character's end, and says so.
func truncate(text string, length int) string {
	if len(text) > length {
		end := length - len("…")
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}

// colon puts a colon before words; nothing if there are none. They end without a full stop.
func colon(words string) string {
	words = strings.TrimRight(words, ". ")
	if words == "" {
		return ""
	}
	return ": " + words
}

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
