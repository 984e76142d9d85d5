package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// pattern matches texts: alternatives separated by "|", in which "*" stands for any text. It ignores the case of ASCII.
type pattern struct {
	globs  []glob
	recent *recentMatches[bool]
}

// glob is an alternative in lower case: the texts around its asterisks.
type glob []string

func newPattern(text string) pattern {
	p := pattern{recent: &recentMatches[bool]{}}
	for alternative := range strings.SplitSeq(strings.ToLower(text), "|") {
		p.globs = append(p.globs, strings.Split(alternative, "*"))
	}
	return p
}

// isPattern reports whether a text has a meaning as a pattern that it does not have as a name.
func isPattern(text string) bool { return strings.ContainsAny(text, "*|") }

// match matches a name of a field, which is remembered.
func (p pattern) match(name string) bool {
	if matches, known := p.recent.lookup(name); known {
		return matches
	}
	matches := p.matches(name)
	p.recent.store(name, matches)
	return matches
}

// matches matches a text that may be confidential, and must not be remembered.
func (p pattern) matches(text string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(p.globs, func(g glob) bool { return g.match(lower) })
}

func (g glob) match(text string) bool {
	last := len(g) - 1
	if last == 0 {
		return text == g[0]
	}
	text, ok := strings.CutPrefix(text, g[0])
	if !ok {
		return false
	}
	for _, part := range g[1:last] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, g[last])
}

// recentMatches remembers results by text. The keys of objects are mostly the same few hundred field names, and a pattern has
// dozens of alternatives.
type recentMatches[R any] struct {
	results sync.Map
	size    atomic.Int32
}

// Bounds of recentMatches. Long texts are no field names.
const (
	maxRecent     = 1024
	maxRecentText = 64
)

func (r *recentMatches[R]) lookup(text string) (result R, known bool) {
	v, known := r.results.Load(text)
	if known {
		result, _ = v.(R)
	}
	return result, known
}

func (r *recentMatches[R]) store(text string, result R) {
	if len(text) <= maxRecentText && r.size.Load() < maxRecent {
		r.size.Add(1)
		r.results.Store(strings.Clone(text), result) // the text may be a part of a large document
	}
}
