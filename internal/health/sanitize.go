package health

import (
	"regexp"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// Length limits for texts and names of other writers in a message, in bytes.
const (
	maxMessage = 300
	maxName    = 160
)

// Parts of kubelet and runtime messages that differ from pod to pod. Without them, pods that fail for the same cause have
// equal verdicts.
var (
	address   = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-fA-F]*:[0-9a-fA-F:.]+\]`)
	identity  = regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	token     = regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}\b`)
	localPort = regexp.MustCompile(`IP:\d+->IP:`)
)

// sanitizeMessage returns a message about a pod as one line of bounded length, without parts that identify the pod.
func sanitizeMessage(pod *corev1.Pod, message string) string {
	message = truncate(message, 8*maxMessage) // bounds the cost of the expressions
	message = strings.Join(strings.Fields(message), " ")
	message = anonymize(pod, message)
	message = identity.ReplaceAllString(message, "ID")
	message = address.ReplaceAllString(message, "IP")
	message = localPort.ReplaceAllString(message, "IP->IP:")
	message = token.ReplaceAllString(message, "kube-api-access")
	return truncate(message, maxMessage)
}

// uidLength is the length of a UID. A shorter one may be a part of a word.
const uidLength = 36

// randomLength is how many characters the API server adds to a generateName.
const randomLength = 5

// anonymize replaces a pod's name and UID. A name with a random suffix is unique, so it is replaced everywhere, even in
// the name of a claim for the pod. Any other name with a hyphen may be part of another name: it is replaced where it is
// whole and not the name of another kind. A name without a hyphen may be an ordinary word and stays.
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

// otherKindBefore matches the text before the name of another kind: `secret "`.
var otherKindBefore = regexp.MustCompile(`(?i)\b(?:secrets?|configmaps?|serviceaccounts?|persistentvolumeclaims?|persistentvolumes?|claims?|volumes?|nodes?|images?|containers?|services?|class|classes) "$`)

// claimBefore matches the text before the pod's name in the name of a claim of a StatefulSet.
var claimBefore = regexp.MustCompile(`(?i)\bpersistentvolumeclaim "[a-z0-9.-]+-$`)

// replaceWhole replaces a name where it is not part of a longer name, and not the name of another kind.
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

// startsInName reports whether a text continues a name. A full stop belongs to the name if more of it follows.
func startsInName(text string) bool {
	text = strings.TrimPrefix(text, ".")
	return text != "" && isNameByte(text[0])
}

// triedPod matches the start of a controller's message about a pod that was not admitted.
var triedPod = regexp.MustCompile(`^(?:Error creating: )?pods "[^"]*" is `)

// sanitizeControllerMessage returns a controller's message about its pods as one line of bounded length. It removes the
// name of a pod that was not created, because that differs with each attempt.
func sanitizeControllerMessage(message string) string {
	message = strings.Join(strings.Fields(truncate(message, 8*maxMessage)), " ")
	return truncate(triedPod.ReplaceAllString(message, "pods are "), maxMessage)
}

// truncate cuts a text to a length in bytes, at the end of a character, and marks the cut.
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

// truncateMiddle shortens a name whose end matters as much as its beginning, such as an image with its tag.
func truncateMiddle(name string, length int) string {
	if len(name) <= length {
		return truncate(name, length)
	}
	head := truncate(name, length/2)
	start := len(name) - (length - len(head))
	for start < len(name) && !utf8.RuneStart(name[start]) {
		start++
	}
	return head + strings.ToValidUTF8(name[start:], "?")
}

// colon returns words behind a colon and without a full stop; empty if there are none.
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
