package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/reload"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

const confidential = "correct-horse-battery-staple"

// definitionsOfTest are definitions of a workload's resources, each with the confidential text.
var definitionsOfTest = map[string]string{
	"a Secret":                `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"sesame","uid":"u"},"data":{"password":"` + confidential + `"}}`,
	"a Secret's stringData":   `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"sesame"},"stringData":{"password":"` + confidential + `"}}`,
	"a List with a Secret":    `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","data":{"k":"` + confidential + `"}}]}`,
	"an applied Secret":       `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + confidential + `"}}}`,
	"a Deployment":            `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"` + confidential + `"}]}]}}}}`,
	"a manifest as a text":    `"kind: Secret\ndata: {password: ` + confidential + `}"`,
	"a large custom resource": `{"apiVersion":"example.com/v1","kind":"A","spec":{"password":"` + confidential + `","text":"` + strings.Repeat("x", 2*largeDefinition) + `"}}`,
}

func TestDefinitions_AreRedacted_ExceptForAdministrators(t *testing.T) {
	url, client, token := secured(t)
	admin, viewer, agent := token("admin", ""), token("viewer", ""), token("agent", "c")
	request := func(bearer, method, path, body string) string {
		t.Helper()
		got := send(t, client, method, url+path, asJSON("Authorization", bearer), []byte(body))
		if got.code >= http.StatusBadRequest {
			t.Fatalf("%s %s: %d %s", method, path, got.code, got.body)
		}
		return got.body
	}
	created := func(path, body string) int64 {
		t.Helper()
		var answer struct{ Data []struct{ ID int64 } }
		if err := json.Unmarshal([]byte(request(admin, "POST", path, body)), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Data[0].ID
	}
	instance := created("/v0/workload-instances", `{"Name":"web"}`)
	request(admin, "PUT", fmt.Sprintf("/v0/workloads/WorkloadInstance/%d/cluster", instance), `{"clusterUID":"c"}`)
	expect := func(reason, bearer, body string, confidentialShows bool) {
		t.Helper()
		if strings.Contains(body, confidential) != confidentialShows {
			t.Errorf("%s: the confidential value shows: %t, want %t, in %.300s", reason, !confidentialShows, confidentialShows, body)
		}
		if bearer != admin && !strings.Contains(body, "[redacted]") {
			t.Errorf("%s: nothing is marked as redacted in %.300s", reason, body)
		}
	}
	list := fmt.Sprintf("/v0/workload-resource-instances?workloadinstanceid=%d", instance)
	var last string
	for reason, definition := range definitionsOfTest {
		path := fmt.Sprintf("/v0/workload-resource-instances/%d", created("/v0/workload-resource-instances",
			fmt.Sprintf(`{"JSONDefinition":%s,"RuntimeDefinition":%s,"WorkloadInstanceID":%d}`, definition, definition, instance)))
		expect(reason+", read by an administrator", admin, request(admin, "GET", path, ""), true)
		expect(reason+", read by a viewer", viewer, request(viewer, "GET", path, ""), false)
		expect(reason+", read by an agent", agent, request(agent, "GET", path, ""), false)
		expect(reason+", changed by an agent", agent, request(agent, "PATCH", path, `{"LastOperation":"MODIFIED"}`), false)
		last = path[strings.LastIndex(path, "/")+1:]
	}
	expect("a list for an administrator", admin, request(admin, "GET", list, ""), true)
	expect("a list for a viewer", viewer, request(viewer, "GET", list, ""), false)

	for _, version := range []string{"1", "2"} { // the object has a current and a previous version
		request(agent, "POST", "/v0/workload-report-sets", fmt.Sprintf(`{%s,"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"%s",
			"operation":{"resourceInstanceID":"%s","object":{"group":"","version":"v1","kind":"Secret","namespace":"n","name":"sesame","uid":"u"},
			"operation":"MODIFIED","definition":%s}}]}`, someAgent, instance, version, last,
			strings.Replace(definitionsOfTest["a Secret"], `"uid"`, `"labels":{"v":"`+version+`"},"uid"`, 1)))
	}
	expect("an object for an administrator", admin, request(admin, "GET", "/v0/clusters/c/objects/u", ""), true)
	object := request(viewer, "GET", "/v0/clusters/c/objects/u", "")
	expect("an object for a viewer", viewer, object, false)
	if strings.Count(object, "[redacted]") != 2 {
		t.Errorf("the object is %s, want a current and a previous version", object)
	}
	for _, path := range []string{"/v0/workloads", fmt.Sprintf("/v0/workloads/WorkloadInstance/%d", instance), "/v0/clusters"} {
		if body := request(viewer, "GET", path, ""); strings.Contains(body, confidential) {
			t.Errorf("%s shows the confidential value: %s", path, body)
		}
	}
}

func TestDefinitions_WithoutAuthentication_AreUnchanged(t *testing.T) {
	config := onFile(t)
	url := run(t, config)
	instance := create(t, url+"/v0/workload-instances", `{"Name":"web"}`)
	id := create(t, url+"/v0/workload-resource-instances",
		fmt.Sprintf(`{"JSONDefinition":%s,"WorkloadInstanceID":%d}`, definitionsOfTest["a Secret"], instance))
	if _, answer := call(t, exchange{method: "GET", path: fmt.Sprintf("%s/v0/workload-resource-instances/%d", url, id)}); !strings.Contains(answer, confidential) {
		t.Errorf("everyone is an administrator, and the definition is %s", answer)
	}
}

func TestDefinitions_RulesOfFile_AreReloaded(t *testing.T) {
	const rule = `rules: [{group: "", kinds: [ConfigMap], path: data.%s, action: drop}]`
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(field string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(fmt.Sprintf(rule, field)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	config := securedConfig(t, certs.ForTest(t))
	config.RedactionRules = path
	s, _ := runServer(t, config)
	read := func() string {
		view := newDefinitions(s.redaction).view(t.Context(), sender{}) // a context without a principal is no administrator's
		return view(`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1","b":"2"}}`)
	}
	if got, want := read(), `{"apiVersion":"v1","data":{"a":"[redacted]","b":"2"},"kind":"ConfigMap"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	write("b")
	const want = `{"apiVersion":"v1","data":{"a":"1","b":"[redacted]"},"kind":"ConfigMap"}`
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); read() != want; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the definition is %s after the rules have changed, want %s", read(), want)
		}
	}
}

// TestDefinitions_RedactedByAgent_StayAsTheyAre redacts a definition twice, as agent and API do.
func TestDefinitions_RedactedByAgent_StayAsTheyAre(t *testing.T) {
	byAgent, err := redact.Parse(reload.File{Name: "rules.yaml", Data: []byte(`rules: [{group: apps, kinds: [Deployment], path: "**.env[name=*].value", action: hash}]`)})
	if err != nil {
		t.Fatal(err)
	}
	once := byAgent.Document(definitionsOfTest["a Deployment"])
	if twice := newDefinitions(nil).view(t.Context(), sender{})(once); twice != once || !strings.Contains(once, "[redacted ") {
		t.Errorf("the definition is\n%s after the agent, and\n%s after the API", once, twice)
	}
}

func TestDefinitions_Large_WaitEndsWithRequest(t *testing.T) {
	d := newDefinitions(nil)
	large := `{"text":"` + strings.Repeat("x", largeDefinition) + `"}`
	slot, err := d.large.acquire(t.Context(), sender{name: "another"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	viewed := make(chan string)
	go func() { viewed <- d.view(ctx, sender{name: "one"})(large) }()
	if got := d.view(t.Context(), sender{name: "one"})(`{}`); got != `{}` {
		t.Errorf("a small definition waits: got %s", got)
	}
	cancel()
	if got := <-viewed; got != withheld {
		t.Errorf("after the end of the request: got %.100s, want %s", got, withheld)
	}
	slot.release()
	if got := d.view(t.Context(), sender{name: "one"})(large); got != large {
		t.Errorf("with a free slot: got %.100s, want the definition", got)
	}
	expectAllFree(t, "large definitions", d.large, 1)
}

// Large definitions of one cluster wait for each other, so another cluster's is the next one.
func TestDefinitions_Large_OtherSenderIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDefinitions(nil)
		hold := func(name string, holds *atomic.Int32) {
			if slot, err := d.large.acquire(t.Context(), sender{name: name}, 1); err == nil {
				holds.Add(1)
				<-t.Context().Done()
				slot.release()
			}
		}
		first, err := d.large.acquire(t.Context(), sender{name: "hostile"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		var hostile, honest atomic.Int32
		for range 20 {
			go hold("hostile", &hostile)
		}
		synctest.Wait()
		go hold("honest", &honest)
		synctest.Wait()
		first.release()
		synctest.Wait()
		if hostile.Load() != 0 || honest.Load() != 1 {
			t.Errorf("%d hostile definitions have the slot and %d honest ones, want the honest one", hostile.Load(), honest.Load())
		}
	})
}
