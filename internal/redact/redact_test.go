package redact

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/reload"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func rulesOf(tb testing.TB, text string) *Rules {
	tb.Helper()
	r, err := Parse(reload.File{Name: "rules.yaml", Data: []byte(text)})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// objectOf decodes an object of Kubernetes.
func objectOf(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

func encoded(tb testing.TB, v any) string {
	tb.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(out)
}

// r is a redacted value in JSON.
const r = `"[redacted]"`

func TestRules_Apply_BuiltInRules(t *testing.T) {
	for _, tt := range []struct{ reason, in, want string }{
		{
			"the data of a Secret",
			`{"apiVersion":"v1","kind":"Secret","type":"Opaque","data":{"k":"aHVzaA=="},"stringData":{"k":"hush"}}`,
			`{"apiVersion":"v1","data":` + r + `,"kind":"Secret","stringData":` + r + `,"type":"Opaque"}`,
		},
		{
			"the data of a Secret, of another type than expected",
			`{"apiVersion":"v1","kind":"Secret","data":"hush","stringData":["hush"]}`,
			`{"apiVersion":"v1","data":` + r + `,"kind":"Secret","stringData":` + r + `}`,
		},
		{
			"the annotations of a Secret, but for some whose contents are known",
			`{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"example.com/copy":"hush","meta.helm.sh/release-name":"web"}}}`,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"example.com/copy":` + r + `,"meta.helm.sh/release-name":"web"}}}`,
		},
		{
			"the Secrets in a list, with and without a kind",
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","data":{"k":"hush"}},{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}]}`,
			`{"apiVersion":"v1","items":[{"apiVersion":"v1","data":` + r + `,"kind":"Secret"},{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap"}],"kind":"List"}`,
		},
		{
			"Secrets in a list that lack a part of their identity",
			`{"apiVersion":"v1","kind":"List","items":[{"kind":"Secret","data":{"k":"hush"}},{"kind":"Secret","metadata":{},"data":{"k":"hush"}},{"data":{"k":"v"}}]}`,
			`{"apiVersion":"v1","items":[{"data":` + r + `,"kind":"Secret"},{"data":` + r + `,"kind":"Secret","metadata":{}},{"data":{"k":"v"}}],"kind":"List"}`,
		},
		{
			"a SecretList",
			`{"apiVersion":"v1","kind":"SecretList","items":[{"data":{"k":"hush"}}]}`,
			`{"apiVersion":"v1","items":[{"data":` + r + `}],"kind":"SecretList"}`,
		},
		{
			"a Secret in a custom resource",
			`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Secret","data":{"k":"hush"}}]}}}`,
			`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","spec":{"workload":{"manifests":[{"apiVersion":"v1","data":` + r + `,"kind":"Secret"}]}}}`,
		},
		{
			"another group's Secret is no Secret",
			`{"apiVersion":"example.com/v1","kind":"Secret","data":{"k":"v"}}`,
			`{"apiVersion":"example.com/v1","data":{"k":"v"},"kind":"Secret"}`,
		},
		{
			"environment variables, by their names",
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{` +
				`"initContainers":[{"env":[{"name":"db_password","value":"hush"}]}],"ephemeralContainers":[{"env":[{"name":"API-KEY","value":"hush"}]}],` +
				`"containers":[{"env":[{"name":"TOKEN","value":"hush"},{"name":"LEVEL","value":"info"},{"name":"SECRET","valueFrom":{"secretKeyRef":{"name":"s"}}},{"name":"PASSWORD","value":""}]}]}}}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{` +
				`"containers":[{"env":[{"name":"TOKEN","value":` + r + `},{"name":"LEVEL","value":"info"},{"name":"SECRET","valueFrom":{"secretKeyRef":{"name":"s"}}},{"name":"PASSWORD","value":""}]}],` +
				`"ephemeralContainers":[{"env":[{"name":"API-KEY","value":` + r + `}]}],"initContainers":[{"env":[{"name":"db_password","value":` + r + `}]}]}}}}`,
		},
		{
			"copies of the manifest, also of pod templates",
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hush","kopf.zalando.org/last-handled-configuration":"hush","keep":"me"}},` +
				`"spec":{"template":{"metadata":{"annotations":{"example.com/last-applied":"hush"}}}}}`,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"keep":"me","kopf.zalando.org/last-handled-configuration":` + r + `,"kubectl.kubernetes.io/last-applied-configuration":` + r + `}},` +
				`"spec":{"template":{"metadata":{"annotations":{"example.com/last-applied":` + r + `}}}}}`,
		},
		{
			"fields of custom resources, but for references and switches",
			`{"apiVersion":"example.com/v1","kind":"Database","spec":{"adminPassword":"hush","users":[{"password":1234,"name":"a"}],"rootPassword":{"secretName":"s"},"requirePassword":true,"passwordKey":"k"}}`,
			`{"apiVersion":"example.com/v1","kind":"Database","spec":{"adminPassword":` + r + `,"passwordKey":"k","requirePassword":true,"rootPassword":{"secretName":"s"},"users":[{"name":"a","password":` + r + `}]}}`,
		},
		{
			"the values of a Helm chart",
			`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","spec":{"sources":[{"helm":{"values":"password: hush"}}],"source":{"helm":{"parameters":[{"name":"db.password","value":"hush"},{"name":"replicas","value":"3"}]}}}}`,
			`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","spec":{"source":{"helm":{"parameters":[{"name":"db.password","value":` + r + `},{"name":"replicas","value":"3"}]}},"sources":[{"helm":{"values":` + r + `}}]}}`,
		},
		{
			"environment variables and headers of custom resources",
			`{"apiVersion":"example.com/v1","kind":"App","spec":{"extraEnv":[{"name":"DB_PASSWORD","value":"hush"},{"name":"LEVEL","value":"info"}],"env":[{"key":"DB_PASSWORD","value":"hush"}],` +
				`"sidecar":{"environment":{"DB_PASS":"hush","SECRET_KEY":"hush","DATABASE_URL":"hush","LEVEL":"info","TOKEN":{"secretKeyRef":{"name":"s"}}}},"headers":[{"name":"Authorization","value":"hush"}],` +
				`"set":[{"name":"db.password","value":"hush"}],"passwordBase64":"hush","password2":"hush"}}`,
			`{"apiVersion":"example.com/v1","kind":"App","spec":{"env":[{"key":"DB_PASSWORD","value":` + r + `}],"extraEnv":[{"name":"DB_PASSWORD","value":` + r + `},{"name":"LEVEL","value":"info"}],` +
				`"headers":[{"name":"Authorization","value":` + r + `}],"password2":` + r + `,"passwordBase64":` + r + `,"set":[{"name":"db.password","value":` + r + `}],` +
				`"sidecar":{"environment":{"DATABASE_URL":` + r + `,"DB_PASS":` + r + `,"LEVEL":"info","SECRET_KEY":` + r + `,"TOKEN":{"secretKeyRef":{"name":"s"}}}}}}`,
		},
		{
			"private keys in a ConfigMap",
			`{"apiVersion":"v1","kind":"ConfigMap","data":{"tls.key":"hush","id_rsa":"hush","pass":"hush","tls.crt":"public"}}`,
			`{"apiVersion":"v1","data":{"id_rsa":` + r + `,"pass":` + r + `,"tls.crt":"public","tls.key":` + r + `},"kind":"ConfigMap"}`,
		},
		{
			"entries of a ConfigMap, by their names",
			`{"apiVersion":"v1","kind":"ConfigMap","binaryData":{"db_password.txt":"aHVzaA==","logo.png":"iVBO"},"data":{"DATABASE_URL":"hush","JWT_SECRET":"hush","SECRET_KEY_BASE":"hush","db_dsn":"hush","DB_PASSWORD_1":"hush",".dockerconfigjson":"hush","LEVEL":"info","PWD":"/srv"}}`,
			`{"apiVersion":"v1","binaryData":{"db_password.txt":` + r + `,"logo.png":"iVBO"},"data":{".dockerconfigjson":` + r + `,"DATABASE_URL":` + r + `,"DB_PASSWORD_1":` + r + `,"JWT_SECRET":` + r + `,"LEVEL":"info","PWD":"/srv","SECRET_KEY_BASE":` + r + `,"db_dsn":` + r + `},"kind":"ConfigMap"}`,
		},
		{
			"environment variables of databases and brokers, and headers of a probe",
			`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"env":[{"name":"PGPASS","value":"hush"},{"name":"AUTH","value":"hush"},{"name":"HTTP_BASIC_AUTH","value":"hush"},` +
				`{"name":"POSTGRES_URL","value":"hush"},{"name":"KAFKA_SASL_JAAS_CONFIG","value":"hush"},{"name":"AUTHOR","value":"me"}],` +
				`"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"Authorization","value":"hush"},{"name":"Accept","value":"a/b"}]}}}]}}`,
			`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"env":[{"name":"PGPASS","value":` + r + `},{"name":"AUTH","value":` + r + `},{"name":"HTTP_BASIC_AUTH","value":` + r + `},` +
				`{"name":"POSTGRES_URL","value":` + r + `},{"name":"KAFKA_SASL_JAAS_CONFIG","value":` + r + `},{"name":"AUTHOR","value":"me"}],` +
				`"livenessProbe":{"httpGet":{"httpHeaders":[{"name":"Authorization","value":` + r + `},{"name":"Accept","value":"a/b"}]}}}]}}`,
		},
		{
			"annotations, by their names",
			`{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"example.com/admin-password":"hush","example.com/token":"hush","example.com/secret-name":"web"}}}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"example.com/admin-password":` + r + `,"example.com/secret-name":"web","example.com/token":` + r + `}}}`,
		},
		{
			"credentials in a list, and in a map as its value",
			`{"apiVersion":"example.com/v1","kind":"A","spec":{"rootPassword":{"value":"hush"},"oldPassword":["hush",1234,{"name":"s"}],"token":{"valueFrom":{"secretKeyRef":{"name":"s"}}}}}`,
			`{"apiVersion":"example.com/v1","kind":"A","spec":{"oldPassword":[` + r + `,` + r + `,{"name":"s"}],"rootPassword":{"value":` + r + `},"token":{"valueFrom":{"secretKeyRef":{"name":"s"}}}}}`,
		},
		{
			"a template of a Secret with nothing but its kind, and a reference to a Secret",
			`{"apiVersion":"example.com/v1","kind":"A","spec":{"template":{"kind":"Secret","data":{"k":"hush"}},"ref":{"kind":"Secret","name":"s"}}}`,
			`{"apiVersion":"example.com/v1","kind":"A","spec":{"ref":{"kind":"Secret","name":"s"},"template":{"data":` + r + `,"kind":"Secret"}}}`,
		},
		{
			"the template of an ExternalSecret, but for the names of its keys",
			`{"apiVersion":"external-secrets.io/v1","kind":"ExternalSecret","spec":{"data":[{"secretKey":"k"}],"target":{"template":{"data":{"k":"hush"}}}}}`,
			`{"apiVersion":"external-secrets.io/v1","kind":"ExternalSecret","spec":{"data":[{"secretKey":"k"}],"target":{"template":{"data":` + r + `}}}}`,
		},
		{
			"the values of a HelmRelease, but for references",
			`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","spec":{"values":{"a":{"secret":"hush","secretKey":"hush","pass":"hush"},"credentials":"hush","existingSecret":{"name":"s"},"replicas":3}}}`,
			`{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","spec":{"values":{"a":{"pass":` + r + `,"secret":` + r + `,"secretKey":` + r + `},"credentials":` + r + `,"existingSecret":{"name":"s"},"replicas":3}}}`,
		},
		{
			"the values of the charts of an ApplicationSet",
			`{"apiVersion":"argoproj.io/v1alpha1","kind":"ApplicationSet","spec":{"template":{"spec":{"source":{"helm":{"values":"hush","valuesObject":{"secretKey":"hush","level":"info"}}}}}}}`,
			`{"apiVersion":"argoproj.io/v1alpha1","kind":"ApplicationSet","spec":{"template":{"spec":{"source":{"helm":{"values":` + r + `,"valuesObject":{"level":"info","secretKey":` + r + `}}}}}}}`,
		},
		{
			"the identity of an object stays",
			`{"apiVersion":"example.com/v1","kind":"A","metadata":{"name":"x","labels":{"token":"label"},"uid":"u"}}`,
			`{"apiVersion":"example.com/v1","kind":"A","metadata":{"labels":{"token":"label"},"name":"x","uid":"u"}}`,
		},
		{
			"parts of another type than expected",
			`{"apiVersion":1,"kind":["x"],"metadata":"x","spec":[1,null,"x",[{"env":{"name":"TOKEN"}}]]}`,
			`{"apiVersion":1,"kind":["x"],"metadata":"x","spec":[1,null,"x",[{"env":{"name":"TOKEN"}}]]}`,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			object := objectOf(t, tt.in)
			(*Rules)(nil).Apply(object)
			if got := encoded(t, object); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRules_Apply_RulesOfUser(t *testing.T) {
	for _, tt := range []struct{ reason, rules, in, want string }{
		{
			"fields, lists, items by name, and quoted names",
			`
- {group: example.com, kinds: [A], path: spec.a, action: drop}
- {group: example.com, kinds: [A], path: 'spec.list[*]', action: drop}
- {group: example.com, kinds: [A], path: 'spec.users[name=adm*].hint', action: drop}
- {group: example.com, kinds: [A], path: 'data."tls.key"', action: drop}
- {group: example.com, kinds: [B], path: spec, action: drop}`,
			`{"apiVersion":"example.com/v1","kind":"A","data":{"tls.key":"hush","tls":{"key":"x"}},"spec":{"a":{"b":"hush"},"list":["hush",2],"users":[{"name":"admin","hint":"hush"},{"name":"other","hint":"x"}]}}`,
			`{"apiVersion":"example.com/v1","data":{"tls":{"key":"x"},"tls.key":` + r + `},"kind":"A","spec":{"a":` + r + `,"list":[` + r + `,` + r + `],"users":[{"hint":` + r + `,"name":"admin"},{"hint":"x","name":"other"}]}}`,
		},
		{
			"groups by pattern, and annotations",
			`- {group: "*.example.com", kinds: ["*"], annotation: "x/*", except: x/keep, action: drop}`,
			`{"apiVersion":"a.example.com/v1","kind":"A","metadata":{"annotations":{"x/a":"hush","x/keep":"x","y":"y"}}}`,
			`{"apiVersion":"a.example.com/v1","kind":"A","metadata":{"annotations":{"x/a":` + r + `,"x/keep":"x","y":"y"}}}`,
		},
		{
			"keep, for one item of a list",
			`- {group: "", kinds: [Pod], path: "**.env[name=TOKEN_URL].value", action: keep}`,
			`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"env":[{"name":"TOKEN","value":"hush"},{"name":"TOKEN_URL","value":"http://x"}]}]}}`,
			`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"env":[{"name":"TOKEN","value":` + r + `},{"name":"TOKEN_URL","value":"http://x"}]}]}}`,
		},
		{
			"a kept annotation with the name of a credential",
			`- {group: "", kinds: [Service], annotation: example.com/token, action: keep}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"example.com/token":"public"}}}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"example.com/token":"public"}}}`,
		},
		{
			"keep, for everything below a field",
			`- {group: "", kinds: [ConfigMap], path: data, action: keep}`,
			`{"apiVersion":"v1","kind":"ConfigMap","data":{"password":"no secret"}}`,
			`{"apiVersion":"v1","data":{"password":"no secret"},"kind":"ConfigMap"}`,
		},
		{
			"keep has no effect on the data of Secrets, and on copies of manifests",
			`
- {group: "*", kinds: ["*"], path: data, action: keep}
- {group: "*", kinds: ["*"], annotation: "*", action: keep}`,
			`{"apiVersion":"v1","kind":"Secret","data":{"k":"hush"},"metadata":{"annotations":{"a/last-applied":"hush","example.com/mine":"x"}}}`,
			`{"apiVersion":"v1","data":` + r + `,"kind":"Secret","metadata":{"annotations":{"a/last-applied":` + r + `,"example.com/mine":"x"}}}`,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			object := objectOf(t, tt.in)
			rulesOf(t, "rules:\n"+strings.TrimPrefix(tt.rules, "\n")).Apply(object)
			if got := encoded(t, object); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRules_Apply_Hash_IsKeyed(t *testing.T) {
	const text = `rules: [{group: "", kinds: [A], path: 'spec.*', action: hash}]`
	rules, others := rulesOf(t, text), rulesOf(t, text)
	hashesOf := func(r *Rules) map[string]any {
		object := objectOf(t, `{"apiVersion":"v1","kind":"A","spec":{"a":"1","b":"1","c":"2"}}`)
		r.Apply(object)
		return object["spec"].(map[string]any)
	}
	hashes := hashesOf(rules)
	for field, value := range hashes {
		if text := value.(string); !regexp.MustCompile(`^\[redacted [0-9a-f]{16}\]$`).MatchString(text) || !threeport.IsRedacted(text) {
			t.Errorf("field %s is %q, want a mark with a hash", field, text)
		}
	}
	if hashes["a"] != hashes["b"] || hashes["a"] == hashes["c"] {
		t.Errorf("the hashes are %v, want the same for equal values only", hashes)
	}
	if !maps.Equal(hashes, hashesOf(rules)) {
		t.Error("the hashes of the same rules differ")
	}
	if hashes["a"] == hashesOf(others)["a"] {
		t.Error("the hash does not depend on the key: a short secret can be guessed")
	}
}

// TestRules_Apply_RedactedObject_IsNotWritten reads an object concurrently. The race detector reports a write.
func TestRules_Apply_RedactedObject_IsNotWritten(t *testing.T) {
	rules := rulesOf(t, `rules: [{group: "*", kinds: ["*"], path: "**.hint", action: hash}]`)
	object := objectOf(t, `{"apiVersion":"v1","kind":"Secret","data":{"k":"hush"},"spec":{"hint":"hush"},"metadata":{"annotations":{"a":"hush"}}}`)
	rules.Apply(object)
	before := encoded(t, object)
	read := make(chan string)
	go func() { read <- encoded(t, object) }()
	rules.Apply(object)
	if got := <-read; got != before || encoded(t, object) != before {
		t.Errorf("a second time it is %s, want %s", got, before)
	}
}

func TestRules_Definition_StatusOnly_LeavesIdentity(t *testing.T) {
	rules := rulesOf(t, `rules: [{group: example.com, kinds: [A], statusOnly: true}]`)
	const a = `{"apiVersion":"example.com/v1","kind":"A","metadata":{"name":"x","uid":"u","labels":{"a":"b"}},"spec":{"a":1},"status":{"b":2},"empty":{}}`
	const want = `{"apiVersion":"example.com/v1","empty":{},"kind":"A","metadata":{"labels":` + r + `,"name":"x","uid":"u"},"spec":` + r + `,"status":` + r + `}`
	object := objectOf(t, a)
	rules.Apply(object)
	if !reflect.DeepEqual(object, objectOf(t, a)) {
		t.Errorf("Apply leaves %s, want all of it: health needs the object", encoded(t, object))
	}
	rules.Definition(object)
	if got := encoded(t, object); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const reference = `{"apiVersion":"v1","kind":"B","spec":{"ref":{"apiVersion":"example.com/v1","kind":"A","name":"x"}}}`
	if got := rules.Document(reference); got != reference {
		t.Errorf("a reference to such an object is %s, want %s", got, reference)
	}
	const list = `{"apiVersion":"v1","items":[%],"kind":"List"}`
	if got, want := rules.Document(strings.Replace(list, "%", a, 1)), strings.Replace(list, "%", want, 1); got != want {
		t.Errorf("in a list\ngot  %s\nwant %s", got, want)
	}
}

func TestRules_Annotations(t *testing.T) {
	annotations := map[string]string{"example.com/a": "hush", "helm.sh/chart": "web"}
	(*Rules)(nil).Annotations("", "Secret", annotations)
	if want := map[string]string{"example.com/a": threeport.Redacted, "helm.sh/chart": "web"}; !maps.Equal(annotations, want) {
		t.Errorf("got %v, want %v", annotations, want)
	}
}

func TestRules_Document(t *testing.T) {
	for _, tt := range []struct{ reason, in, want string }{
		{"nothing to redact: the text stays as it is", `{ "b": 12345678901234567890, "a": 1.50 }`, `{ "b": 12345678901234567890, "a": 1.50 }`},
		{"numbers and texts keep their digits and characters", `{"n":12345678901234567890,"password":"hush","t":"<\u00e4>"}`, `{"n":12345678901234567890,"password":` + r + `,"t":"<ä>"}`},
		{"a list of objects", `[{"kind":"Secret","apiVersion":"v1","data":{"k":"hush"}}]`, `[{"apiVersion":"v1","data":` + r + `,"kind":"Secret"}]`},
		{"null", `null`, `null`},
		{"a text may be a manifest", `"kind: Secret, data: hush"`, r},
		{"a text in a list", `["hush"]`, r},
		{"invalid JSON", `{"a":"hush"`, r},
		{"too large", `{"a":"` + strings.Repeat("hush", maxDocument/4) + `"}`, r},
	} {
		if got := (*Rules)(nil).Document(tt.in); got != tt.want {
			t.Errorf("%s: got %.200s, want %s", tt.reason, got, tt.want)
		}
	}
}

func TestIsManifestCopy(t *testing.T) {
	for annotation, want := range map[string]bool{
		"example.com/token": false, "example.com/admin-password": false, // redacted, and not removed
		"kubectl.kubernetes.io/last-applied-configuration": true, "kapp.k14s.io/original": true, "objectset.rio.cattle.io/applied": true,
		"banzaicloud.com/last-applied": true, "kopf.zalando.org/last-handled-configuration": true, "example.com/last-handled-configuration": true,
		"helm.sh/chart": false, "example.com/applied": false,
	} {
		if got := IsManifestCopy(annotation); got != want {
			t.Errorf("%s: got %t, want %t", annotation, got, want)
		}
	}
}

func TestPattern_Match(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"a|b*c", "A", true},
		{"a|b*c", "bxxC", true},
		{"a|b*c", "bc", true},
		{"a|b*c", "ab", false},
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*ab*ba*", "aba", false},
		{"*ab*ba*", "abba", true},
		{"ab*ba", "aba", false},
	} {
		p := newPattern(tt.pattern)
		for range 2 { // the second result is remembered
			if got := p.match(tt.text); got != tt.want {
				t.Errorf("%q matches %q: got %t, want %t", tt.pattern, tt.text, got, tt.want)
			}
		}
	}
}
