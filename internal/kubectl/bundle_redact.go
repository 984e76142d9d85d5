package kubectl

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/reload"
)

// bundleRules extend the built-in rules: a bundle leaves the cluster, so it has only the environment variables and annotations that
// are known to be no secrets.
const bundleRules = `
rules:
- {group: '*', kinds: ['*'], path: '**.env[name=GOMEMLIMIT|GOGC|GOMAXPROCS].value', action: keep}
- {group: '*', kinds: ['*'], path: '**.env[*].value', action: drop}
- group: '*'
  kinds: ['*']
  annotation: '*'
  except: 'deployment.kubernetes.io/revision|control-plane.threeport.io/*|controller-gen.kubebuilder.io/version'
  action: drop
`

var bundleRedaction = func() *redact.Rules {
	rules, err := redact.Parse(reload.File{Name: "bundle", Data: []byte(bundleRules)})
	if err != nil {
		panic(err) // each test of the package would fail
	}
	return rules
}()

// redactObject returns a redacted copy of an object, without managed fields.
func redactObject(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy()
	out.SetManagedFields(nil)
	bundleRedaction.Apply(out.Object)
	return out.Object
}

// textRules recognize credentials in texts: in arguments, logs, and messages of Events.
var textRules = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), "[redacted]"},
	{regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`), "[redacted]"}, // a JSON Web Token
	{regexp.MustCompile(`(?i)\b(bearer|basic) +[\w+/=.~-]{8,}`), "$1 [redacted]"},
	{regexp.MustCompile(`://[^/\s"'@]*:[^/\s"'@]*@`), "://[redacted]@"},
	{
		regexp.MustCompile(`(?i)(passwords?|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key|credentials?)(\\?["']?[ \t]*[=:][ \t]*\\?["']?)[^\s"'\\,;&{}\[\]]+`),
		"$1$2[redacted]",
	},
}

// redactText redacts the credentials in a text that are recognized.
func redactText(text []byte) []byte {
	for _, rule := range textRules {
		text = rule.pattern.ReplaceAll(text, []byte(rule.replacement))
	}
	return text
}
