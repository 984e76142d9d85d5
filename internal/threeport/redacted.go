package threeport

import "strings"

// The texts in place of redacted values in definitions. Text between prefix and suffix distinguishes values.
const (
	Redacted       = "[redacted]"
	RedactedPrefix = "[redacted "
	RedactedSuffix = "]"
)

// IsRedacted reports whether a text stands for a redacted value.
func IsRedacted(text string) bool {
	return text == Redacted || strings.HasPrefix(text, RedactedPrefix) && strings.HasSuffix(text, RedactedSuffix)
}
