package operators

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

const (
	httpProxy = "HTTPProxy"
	gateway   = "Gateway"
	httpRoute = "HTTPRoute"
)

// contour reconciles its own HTTPProxies and the objects of the Gateway API. Its scenarios of the latter are cases of the
// conformance tests. Each Contour has one Gateway, so each scenario has its own Contour. No Envoy runs.
func contour() Operator {
	const module, api = "github.com/projectcontour/contour", "sigs.k8s.io/gateway-api"
	return Operator{
		Name: "contour",
		programs: []program{{
			pin: "contour", module: module, command: module + "/cmd/contour", args: contourArgs,
		}},
		crds: []crds{
			{pin: "contour", module: module, paths: []string{"examples/contour/01-crds.yaml"}},
			{pin: "contour", module: api, paths: []string{"config/crd/experimental/*.yaml"}},
		},
		setup:        "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: contour}\nspec: {controllerName: projectcontour.io/gateway-controller}\n",
		perNamespace: true,
		resources: []recording.Resource{
			custom(httpProxy, "projectcontour.io", "v1", "httpproxies"),
			custom(gateway, "gateway.networking.k8s.io", "v1", "gateways"),
			custom(httpRoute, "gateway.networking.k8s.io", "v1", "httproutes"),
		},
		scenarios: append(proxies(), gateways()...),
	}
}

// contourArgs returns the command line of a Contour that has one Gateway.
func contourArgs(p *place) ([]string, error) {
	config := filepath.Join(p.dir, "contour.yaml")
	text := fmt.Sprintf("gateway: {gatewayRef: {namespace: %s, name: %s}}\n", p.namespace, web)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	args := []string{
		"serve", "--kubeconfig=" + p.kubeconfig, "--config-path=" + config, "--insecure", "--disable-leader-election",
		"--watch-namespaces=" + p.namespace, "--envoy-service-namespace=" + p.namespace,
	}
	for _, server := range []string{"xds", "debug-http", "health", "http", "stats"} {
		host, port, err := p.listen()
		if err != nil {
			return nil, err
		}
		args = append(args, "--"+server+"-address="+host, "--"+server+"-port="+port)
	}
	return args, nil
}

func proxies() []scenario.Scenario {
	invalid := text(httpProxy, web, "status.currentStatus", "invalid")
	return []scenario.Scenario{
		moment("contour-valid", "The routes are valid. Contour does not wait for ready pods.", scenario.Healthy,
			text(httpProxy, web, "status.currentStatus", "valid"), part(httpProxy, web, scenario.Healthy)),
		moment("contour-no-service", "Its only Service does not exist, so no route works.", scenario.Down,
			invalid, part(httpProxy, web, scenario.Down)),
		moment("contour-no-secret", "The Secret with the certificate does not exist, so the host is not served.", scenario.Down,
			invalid, part(httpProxy, web, scenario.Down)),
		moment("contour-orphaned", "No root proxy includes it, so its routes are not served.", scenario.Unhealthy,
			text(httpProxy, web, "status.currentStatus", "orphaned"), part(httpProxy, web, scenario.Unhealthy)),
		moment("contour-conflict", "Two proxies claim one host, and Contour serves none of them.", scenario.Down,
			all(invalid, text(httpProxy, "other", "status.currentStatus", "invalid")),
			part(httpProxy, web, scenario.Down), part(httpProxy, "other", scenario.Down)),
	}
}

func gateways() []scenario.Scenario {
	programmed := condition(gateway, web, "Programmed", isTrue, "")
	return []scenario.Scenario{
		moment("gateway-api-accepted", "The Gateway is programmed, and the route is attached to it.", scenario.Healthy,
			all(programmed, routed("Accepted", isTrue, ""), routed("ResolvedRefs", isTrue, "")),
			part(gateway, web, scenario.Healthy), part(httpRoute, web, scenario.Healthy)),
		moment("gateway-api-no-backend", "The only backend of the route does not exist: Contour answers 500.", scenario.Unhealthy,
			all(programmed, routed("ResolvedRefs", isFalse, "BackendNotFound")),
			part(gateway, web, scenario.Healthy), part(httpRoute, web, scenario.Unhealthy)),
		moment("gateway-api-backend-kind", "The backend is of a kind that does not exist.", scenario.Unhealthy,
			all(programmed, routed("ResolvedRefs", isFalse, "InvalidKind")),
			part(gateway, web, scenario.Healthy), part(httpRoute, web, scenario.Unhealthy)),
		moment("gateway-api-cross-namespace", "The backend is in another namespace, which no ReferenceGrant permits.", scenario.Unhealthy,
			all(programmed, routed("ResolvedRefs", isFalse, "RefNotPermitted")),
			part(gateway, web, scenario.Healthy), part(httpRoute, web, scenario.Unhealthy)),
		moment("gateway-api-no-listener", "The route names a listener that the Gateway does not have.", scenario.Down,
			all(programmed, routed("Accepted", isFalse, "NoMatchingParent")),
			part(gateway, web, scenario.Healthy), part(httpRoute, web, scenario.Down)),
		moment("gateway-api-no-hostname", "No listener has the hostname of the route.", scenario.Down,
			all(programmed, routed("Accepted", isFalse, "NoMatchingListenerHostname")),
			part(gateway, web, scenario.Healthy), part(httpRoute, web, scenario.Down)),
		moment("gateway-api-invalid-certificate", "The only listener has a Secret that does not exist as its certificate.", scenario.Down,
			object(gateway, web, func(obj *unstructured.Unstructured) error { return listener(obj, "ResolvedRefs", isFalse) }),
			part(gateway, web, scenario.Down)),
		moment("gateway-api-one-bad-listener", "One listener serves; the other has a Secret that does not exist.", scenario.Unhealthy,
			object(gateway, web, func(obj *unstructured.Unstructured) error { return listener(obj, "ResolvedRefs", isFalse) }),
			part(gateway, web, scenario.Unhealthy)),
		moment("gateway-api-other-class", "No controller takes the class of the Gateway; it was created seconds ago.", scenario.Reconciling,
			all(exists(gateway, web), exists(httpRoute, web)),
			part(gateway, web, scenario.Reconciling), part(httpRoute, web, scenario.Reconciling)),
	}
}

// routed checks a condition of the route about its first parent.
func routed(conditionType, status, reason string) scenario.Check {
	return object(httpRoute, web, func(obj *unstructured.Unstructured) error {
		parents, _, _ := unstructured.NestedSlice(obj.Object, "status", "parents")
		return nested(obj, parents, conditionType, status, reason)
	})
}

// listener checks a condition of any listener of a Gateway.
func listener(obj *unstructured.Unstructured, conditionType, status string) error {
	listeners, _, _ := unstructured.NestedSlice(obj.Object, "status", "listeners")
	return nested(obj, listeners, conditionType, status, "")
}

// nested checks that an item of a list has a condition.
func nested(obj *unstructured.Unstructured, list []any, conditionType, status, reason string) error {
	err := fmt.Errorf("the list of %s is empty", obj.GetName())
	for _, item := range list {
		of, _ := item.(map[string]any)
		conditions, _, _ := unstructured.NestedSlice(of, "conditions")
		if err = conditionIn(conditions, obj, conditionType, status, reason); err == nil {
			return nil
		}
	}
	return err
}
