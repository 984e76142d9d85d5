package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names of fields with counts, as the scale subresource, the built-in workloads and operators have them. Of each list the
// first field that is there counts.
var (
	declaredCountFields = []string{"replicas", "size", "instances", "members", "nodes", "nodeCount", "replicaCount", "clusterSize"}
	desiredCountFields  = []string{
		"desiredReplicas", "expectedNodes", "expectedReplicas", "desiredNumberScheduled", "desiredCount", "desired", "replicas",
		"instances", "size", "total", "desiredReady",
	}
	readyCountFields = []string{
		"readyReplicas", "readyInstances", "readyMembers", "readyNodes", "readyPods", "readyCount", "numberReady", "healthyReplicas", "ready",
	}
	availableCountFields = []string{"availableReplicas", "availableNodes", "availableInstances", "numberAvailable"}
	updatedCountFields   = []string{"updatedReplicas", "updatedNodes", "updatedInstances", "updatedNumberScheduled"}
)

// firstCount returns the first of some fields that is a number.
func firstCount(in map[string]any, names ...string) (int64, bool) {
	for _, name := range names {
		if n, ok := whole(in[name]); ok {
			return n, true
		}
	}
	return 0, false
}

// readReplicas compares the counts of a status with the number of replicas that the spec declares, or else the status.
//
// Source: spec.replicas, status.replicas, status.readyReplicas and status.updatedReplicas.
func (v *statusScan) readReplicas(status map[string]any) {
	spec, _ := v.object.value("spec").(map[string]any)
	want, declared := firstCount(spec, declaredCountFields...)
	if !declared {
		want, declared = firstCount(status, "desiredReplicas", "desiredNumberScheduled")
	}
	if declared && want == 0 {
		v.against(nil, verdict(Healthy, ScaledToZero, v.object.subject()+" is scaled to 0"))
	}
	if !declared {
		want, declared = firstCount(status, "replicas")
		if declared && want == 0 {
			v.idleBy(verdict(Healthy, ScaledToZero, v.object.subject()+" is scaled to 0"))
			v.softAgainst(verdict(Reconciling, "NoReplicas", v.object.subject()+" has no replicas"))
			return
		}
	}
	if !declared {
		return
	}
	if ready, ok := firstCount(status, readyCountFields...); ok {
		v.compareReady(nil, ready, want)
	}
	if updated, ok := firstCount(status, updatedCountFields...); ok && updated < want {
		v.against(nil, verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has %d of %d replicas updated", v.object.subject(), updated, want)))
	}
	if exist, ok := firstCount(status, "replicas"); ok && exist > want {
		v.against(nil, verdict(Reconciling, "ScalingDown",
			fmt.Sprintf("%s has %d replicas left of which %d are wanted", v.object.subject(), exist, want)))
	}
}

// readCounts compares the counts of one table with each other, and reads the counts of missing parts.
func (v *statusScan) readCounts(path []string, in map[string]any) {
	if want, ok := firstCount(in, desiredCountFields...); ok {
		for _, names := range [][]string{readyCountFields, availableCountFields, {"updatedAvailableReplicas"}, {"updatedReadyReplicas"}} {
			if have, has := firstCount(in, names...); has {
				v.compareReady(path, have, want)
			}
		}
	}
	if exist, has := firstCount(in, "replicas"); has && len(path) == 0 {
		if updated, has := firstCount(in, "updatedReplicas"); has && updated < exist {
			v.against(path, verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has %d old replicas left", v.name(path), exist-updated)))
		}
	}
	v.readVersions(path, in)
	v.readPartCounts(path, in)
	v.readDoneCounts(path, in)
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if n, ok := whole(in[key]); ok && n > 0 {
			v.readFaultCount(path, key, n)
		}
	}
}

// compareReady compares a count of ready parts with the wanted count.
func (v *statusScan) compareReady(path []string, ready, want int64) {
	switch {
	case ready < want:
		v.tooFew(path, ready, fmt.Sprintf("%s has %d of %d replicas ready", v.name(path), ready, want))
	case want > 0 && (len(path) == 0 || len(path) == 1 && (path[0] == "scale" || path[0] == "summary")):
		v.suggests()
	}
}

// tooFew adds that parts are missing. The first has to be there within the startup limit.
func (v *statusScan) tooFew(path []string, have int64, message string) {
	a := v.undated("ReplicasNotReady", message)
	if have == 0 {
		a = v.limited(verdict(Reconciling, "ReplicasNotReady", message), startup, formatLimit(startup))
	}
	v.against(path, a)
}

// readPartCounts compares the counts of one sort of parts: readyWorkerReplicas and desiredWorkerReplicas.
func (v *statusScan) readPartCounts(path []string, in map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(in)) {
		sort, ok := strings.CutPrefix(key, "ready")
		if !ok {
			sort, ok = strings.CutPrefix(key, "available")
		}
		have, isCount := whole(in[key])
		if !ok || !isCount || sort == "" {
			continue
		}
		if want, known := firstCount(in, "desired"+sort, "min"+sort, "expected"+sort, "total"+sort); known && have < want {
			v.tooFew(path, have, fmt.Sprintf("%s %d of %d", v.fieldName(path, key), have, want))
			return
		}
	}
}

// doneCounts begin the key of a count that a sync brings up to a total: syncedSecrets and totalSecrets.
var doneCounts = []string{"synced", "applied", "deployed", "succeeded", "successful", "completed"}

// readDoneCounts adds that the object works if all of something is done. Fewer say nothing: they may be those of the past.
func (v *statusScan) readDoneCounts(path []string, in map[string]any) {
	if len(path) > 1 || len(path) == 1 && path[0] != "summary" {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		for _, prefix := range doneCounts {
			sort, ok := strings.CutPrefix(key, prefix)
			n, isCount := whole(in[key])
			if !ok || !isCount || n == 0 {
				continue
			}
			if want, known := firstCount(in, "total"+sort, "desired"+sort, "expected"+sort); known && n == want {
				v.suggests()
			}
		}
	}
}

// versionSubjects are the nouns in names such as currentVersion and desiredVersion.
var versionSubjects = []string{"Version", "Image", "Revision", "Generation", "Hash", "Commit", "Phase", "State"}

// readVersions compares the current version in a table with the wanted one.
func (v *statusScan) readVersions(path []string, in map[string]any) {
	for _, subject := range versionSubjects {
		current, _ := in["current"+subject].(string)
		for _, prefix := range []string{"desired", "target", "update"} {
			if next, ok := in[prefix+subject].(string); ok && current != "" && next != "" && !strings.EqualFold(current, next) {
				v.against(path, verdict(Reconciling, "RollingOut", fmt.Sprintf("%s has the %s %s, and is to have %s",
					v.name(path), strings.ToLower(subject), brief(current), brief(next))))
				return
			}
		}
	}
	if ready, _ := in["latestReadyRevisionName"].(string); ready != "" && in["latestCreatedRevisionName"] != nil && in["latestCreatedRevisionName"] != ready {
		v.against(path, verdict(Reconciling, "RollingOut", v.name(path)+" has a later revision that is not ready"))
	}
}

// readFaultCount reads a count of parts that are not as they should be. The count is not zero.
func (v *statusScan) readFaultCount(path []string, key string, n int64) {
	message := fmt.Sprintf("%s %d", v.fieldName(path, key), n)
	for _, prefix := range []string{"unavailable", "unready", "notReady", "numberUnavailable"} {
		if strings.HasPrefix(key, prefix) {
			v.tooFew(path, 1, message)
			return
		}
	}
	words := splitWords(key)
	failedParts := len(words) > 1 && failedCounts.has(words[0]) && countedParts.has(words[1])
	if failedParts || v.countsFailures(path, words) {
		v.against(append(slices.Clip(path), key), verdict(Unhealthy, camelCase(key), message))
	}
}

// countsFailures reports whether a key counts failures of an object without an end: workflowsFailed. For an object that
// runs to an end, or that starts others, the count is its history.
func (v *statusScan) countsFailures(path, words []string) bool {
	if len(path) > 1 || lastWord(words) != "failed" || v.finite {
		return false
	}
	return !triggerKinds.hasAny(v.kind) && words[0] != "max"
}

// readRatio reads a count of a whole in a text, such as "1/2".
func (v *statusScan) readRatio(f statusField, value string) {
	if !ratioKeys.has(lastWord(f.words)) {
		return
	}
	have, want, ok := strings.Cut(value, "/")
	h, isCount := numeral(strings.TrimSpace(have))
	w, isWanted := numeral(strings.TrimSpace(want))
	if ok && isCount && isWanted {
		v.compareReady(f.path, h, w)
	}
}
