package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// replicas looks at how many of what is declared are there.
//
// Source: spec.replicas, status.replicas, status.readyReplicas and status.updatedReplicas, as the scale subresource and
// the built-in workloads have them, and the names that operators use for the same.
func (v *survey) replicas(status map[string]any) {
	spec, _ := v.s.value("spec").(map[string]any)
	want, declared := first(spec, "replicas", "size", "instances", "members", "nodes", "nodeCount", "replicaCount", "clusterSize")
	if !declared {
		if want, declared = first(status, "desiredReplicas", "replicas"); !declared {
			want, declared = first(status, "desiredNumberScheduled")
		} else if want == 0 {
			v.scaledToZero()
			return
		}
	} else if want == 0 {
		v.scaledToZero()
	}
	if !declared {
		return
	}
	if ready, ok := first(status, readyNames...); ok {
		v.count(nil, ready, want)
	}
	updated, ok := first(status, "updatedReplicas", "updatedNodes", "updatedInstances", "updatedNumberScheduled")
	if ok && updated < want {
		v.against(nil, verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has %d of %d replicas updated", v.s.subject(), updated, want)))
	}
	if exist, known := first(status, "replicas"); known && exist > want {
		v.against(nil, verdict(Reconciling, "ScalingDown", fmt.Sprintf("%s has %d replicas left of which %d are wanted", v.s.subject(), exist, want)))
	}
}

// scaledToZero takes in that there is to be nothing. What needs to run at times only says so itself, with a condition.
func (v *survey) scaledToZero() {
	v.against(nil, verdict(Reconciling, "ScaledToZero", v.s.subject()+" is scaled to zero"))
}

// readyNames are the fields that tell how many work; all that are there have to tell of enough.
var readyNames = []string{
	"readyReplicas", "readyInstances", "readyMembers", "readyNodes", "readyPods", "readyCount", "numberReady", "healthyReplicas", "ready",
}

// first returns the first of some fields that is a number.
func first(in map[string]any, names ...string) (int64, bool) {
	for _, name := range names {
		if n, ok := whole(in[name]); ok {
			return n, true
		}
	}
	return 0, false
}

// counts looks at counts that a table has beside each other, and at those of what is missing.
func (v *survey) counts(path []string, in map[string]any) {
	want, ok := first(in, "desiredReplicas", "expectedNodes", "expectedReplicas", "desiredNumberScheduled", "desiredCount", "desired", "replicas",
		"instances", "size", "total")
	if ok {
		for _, names := range [][]string{readyNames, {"availableReplicas", "availableNodes", "availableInstances", "numberAvailable"}, {"updatedAvailableReplicas"}, {"updatedReadyReplicas"}} {
			if have, has := first(in, names...); has {
				v.count(path, have, want)
			}
		}
	}
	if exist, has := first(in, "replicas"); has && len(path) == 0 {
		if updated, has := first(in, "updatedReplicas"); has && updated < exist {
			v.against(path, verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has %d old replicas left", v.name(path), exist-updated)))
		}
	}
	v.versions(path, in)
	v.shares(path, in)
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if n, ok := whole(in[key]); ok && n > 0 {
			v.lacking(path, key, n)
		}
	}
}

// shares looks at counts of one sort of parts: readyWorkerReplicas and desiredWorkerReplicas.
func (v *survey) shares(path []string, in map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(in)) {
		sort, ok := strings.CutPrefix(key, "ready")
		if !ok {
			sort, ok = strings.CutPrefix(key, "available")
		}
		have, isCount := whole(in[key])
		if !ok || !isCount || sort == "" {
			continue
		}
		if want, known := first(in, "desired"+sort, "min"+sort, "expected"+sort, "total"+sort); known && have < want {
			v.short(path, have, fmt.Sprintf("%s has %s %d of %d", v.name(path), key, have, want))
			return
		}
	}
}

// versions looks at what a table says of the version that there is, and of the one that there is to be.
func (v *survey) versions(path []string, in map[string]any) {
	for _, what := range []string{"Version", "Image", "Revision", "Generation", "Hash", "Commit", "Phase", "State"} {
		now, _ := in["current"+what].(string)
		for _, prefix := range []string{"desired", "target", "update"} {
			if next, ok := in[prefix+what].(string); ok && now != "" && next != "" && !strings.EqualFold(now, next) {
				v.against(path, verdict(Reconciling, "RollingOut",
					fmt.Sprintf("%s has the %s %s, and is to have %s", v.name(path), strings.ToLower(what), brief(now), brief(next))))
				return
			}
		}
	}
	if ready, _ := in["latestReadyRevisionName"].(string); ready != "" && in["latestCreatedRevisionName"] != nil && in["latestCreatedRevisionName"] != ready {
		v.against(path, verdict(Reconciling, "RollingOut", v.name(path)+" has a later revision that is not ready"))
	}
}

// lacking looks at the count of what is not as it is to be.
func (v *survey) lacking(path []string, key string, n int64) {
	message := fmt.Sprintf("%s has %s %d", v.name(path), key, n)
	for _, prefix := range []string{"unavailable", "unready", "notReady", "numberUnavailable"} {
		if strings.HasPrefix(key, prefix) {
			v.short(path, 1, message)
			return
		}
	}
	words := split(key)
	if v.tallies(path, words) {
		v.against(append(slices.Clip(path), key), verdict(Unhealthy, camel(key), message))
		return
	}
	if len(words) < 2 || words[0] != "failed" && words[0] != "degraded" && words[0] != "unhealthy" {
		return
	}
	switch words[1] {
	case "machine", "machines", "node", "nodes", "replicas", "pods", "instances", "members", "tasks", "count":
		v.against(append(slices.Clip(path), key), verdict(Unhealthy, camel(key), message))
	}
}

func (v *survey) count(path []string, ready, want int64) {
	switch {
	case ready < want:
		v.short(path, ready, fmt.Sprintf("%s has %d of %d replicas ready", v.name(path), ready, want))
	case want > 0 && (len(path) == 0 || len(path) == 1 && path[0] == "scale"):
		v.weak = true
	}
}

// short judges what has too few: on its way, within the time that it may take to have the first.
func (v *survey) short(path []string, have int64, message string) {
	a := v.undated("ReplicasNotReady", message)
	if have == 0 {
		a = v.until(verdict(Reconciling, "ReplicasNotReady", message), startup, spell(startup))
	}
	v.against(path, a)
}

// tallies reports whether a key counts what has failed of something that does not run to an end: workflowsFailed. Of
// what runs, or makes others run, it is the history.
func (v *survey) tallies(path, words []string) bool {
	if len(path) > 1 || len(words) == 0 || words[len(words)-1] != "failed" || v.finite() {
		return false
	}
	return !slices.ContainsFunc(v.kind, func(w string) bool { return repeated[w] }) && words[0] != "max"
}
