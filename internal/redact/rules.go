package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed" // the built-in rules
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/threeport/threeport-agent/internal/reload"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Rules are the built-in rules, and those of a user. They do not change, and are safe for concurrent use. Nil are the built-in
// rules.
type Rules struct {
	user, builtIn layer
	// key is that of the hashes. It is random, so that a short secret cannot be guessed from its hash.
	key []byte
}

// layer is rules of one source. A keep rule has precedence over the other rules of its layer, and those of a user over the
// built-in rules.
type layer struct{ keep, redact *ruleSet }

// rule redacts, or keeps, the values of a path or of annotations in objects of some kinds.
type rule struct {
	group, kind *pattern // nil for all
	path        path     // without segments in a rule about annotations
	annotation  *pattern
	except      *pattern // of annotations that the rule does not select; nil for none
	action      action
	// always is true for a rule that no keep rule restricts.
	always bool
}

// action is the effect of a rule on a value.
type action string

// The actions. statusOnly is about whole objects.
const (
	drop       action = "drop"
	hash       action = "hash"
	keep       action = "keep"
	statusOnly action = "statusOnly"
)

// universal reports whether a rule is about all kinds.
func (r *rule) universal() bool { return r.group == nil && r.kind == nil }

func (r *rule) covers(of objectKind) bool {
	return (r.group == nil || r.group.match(of.group)) && (r.kind == nil || r.kind.match(of.kind))
}

func (r *rule) selectsAnnotation(name string) bool {
	return r.annotation.match(name) && (r.except == nil || !r.except.match(name))
}

// objectKind is the group and the kind of an object.
type objectKind struct{ group, kind string }

var (
	//go:embed always.yaml
	alwaysText []byte
	//go:embed builtin.yaml
	builtInText []byte
)

// always has the built-in rules that no rule of a user limits, and builtIn has all built-in rules.
var always, builtIn = func() (always, all layer) {
	parse := func(name string, text []byte) layer {
		parsed, err := parseFiles([]reload.File{{Name: name, Data: text}})
		if err != nil {
			panic(err) // each test of the package would fail
		}
		return parsed
	}
	always, others := parse("always.yaml", alwaysText), parse("builtin.yaml", builtInText)
	for _, r := range always.redact.rules {
		r.always = true
	}
	return always, layer{others.keep, newRuleSet(slices.Concat(always.redact.rules, others.redact.rules))}
}()

// IsManifestCopy reports whether an annotation has a copy of its object's manifest. That of a Secret has its data. It does not
// keep the text, which may be anything in an object.
func IsManifestCopy(annotation string) bool {
	return slices.ContainsFunc(always.redact.annotations, func(r *rule) bool { return r.annotation.matches(annotation) })
}

// builtInRules are the rules without those of a user.
var builtInRules = newRules(layer{&ruleSet{}, &ruleSet{}})

func newRules(user layer) *Rules {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return &Rules{user: user, builtIn: builtIn, key: key}
}

// Len is the number of rules that are not built in.
func (r *Rules) Len() int { return len(r.user.keep.rules) + len(r.user.redact.rules) }

func (r *Rules) orBuiltIn() *Rules {
	if r == nil {
		return builtInRules
	}
	return r
}

// replacement returns the text in place of a value.
func (r *Rules) replacement(of action, value any) string {
	if of != hash {
		return threeport.Redacted
	}
	text, isText := value.(string)
	if !isText {
		encoded, _ := json.Marshal(value) // a decoded value always marshals
		text = string(encoded)
	}
	sum := hmac.New(sha256.New, r.key)
	sum.Write([]byte(text))
	return threeport.RedactedPrefix + hex.EncodeToString(sum.Sum(nil)[:8]) + threeport.RedactedSuffix
}

// isEmpty reports whether there is nothing to redact in a value.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == "" || threeport.IsRedacted(v)
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
