package health

import "strings"

// byConventions assesses an object of a kind without a rule, by its whole status. The object is Healthy if something in
// the status says that it works and nothing speaks against it.
//
// Source: API conventions, "Typical status properties"; and the phases, states, flags, errors and counts that operators
// commonly write where there is no convention.
func byConventions(s *fields, ctx Context) Assessment {
	if reason := suspension(s); reason != "" {
		return suspended(s, ctx, verdict(Healthy, reason, s.subject()+" is "+strings.ToLower(reason)))
	}
	for _, name := range []string{"observedGeneration", "lastObservedGeneration", "reconciledGeneration"} {
		if _, isTable := s.value("status").(map[string]any); !isTable {
			break
		}
		observed, ok := numeral(s.value("status", name)) // a hash says nothing
		if generation, known := s.number("metadata", "generation"); ok && known && observed != generation {
			return notObserved(s) // a later one is of an earlier object with this name
		}
	}
	return scanStatus(s, ctx).verdict()
}
