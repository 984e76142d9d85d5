package controller

import (
	"encoding/json"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// How large things may be, in bytes of JSON, which is how custom resources are stored. etcd takes 1.5 MiB.
const (
	mostStored  = 1_250_000 // a ThreeportWorkload as a whole
	leastStatus = 64_000    // a status, however large the rest is; without resources it has half of that at most
	// leastMessage is what is left of a resource's message.
	leastMessage = 40
)

// fit makes a status small enough to be stored with the rest of its workload, which upstream writes. Step by step it gives
// up what matters least: which versions were reported, most of the messages, what is Healthy, and the others; each from
// the end.
func fit(status *v1alpha1.ThreeportWorkloadStatus, wl *v1alpha1.ThreeportWorkload) {
	total := size(status)
	if total <= leastStatus {
		return
	}
	rest := *wl
	rest.Status = v1alpha1.ThreeportWorkloadStatus{}
	excess := total - max(mostStored-size(&rest), leastStatus)
	excess -= stripVersions(status.Resources, excess)
	excess -= stripMessages(status.Resources, excess)
	for _, well := range []bool{true, false} {
		excess -= omit(status, well, excess)
	}
}

// size is how many bytes something takes in JSON.
func size(v any) int {
	text, err := json.Marshal(v)
	if err != nil { // no type of the API fails to encode
		return 0
	}
	return len(text)
}

// stripVersions takes out what was reported of resources, until an excess is gone, and returns what was won.
func stripVersions(resources []v1alpha1.ResourceStatus, excess int) (won int) {
	for i := len(resources) - 1; i >= 0 && won < excess; i-- {
		if r := &resources[i]; r.ReportedResourceVersion != "" {
			won += len(`,"reportedResourceVersion":""`) + len(r.ReportedResourceVersion)
			r.ReportedResourceVersion = ""
		}
	}
	return won
}

// stripMessages cuts messages to a few words, until an excess is gone, and returns what was won.
func stripMessages(resources []v1alpha1.ResourceStatus, excess int) (won int) {
	for i := len(resources) - 1; i >= 0 && won < excess; i-- {
		r := &resources[i]
		won += size(r.Message)
		r.Message = cut(r.Message, leastMessage)
		won -= size(r.Message)
	}
	return won
}

// omit takes resources out, until an excess is gone, and returns what was won.
func omit(status *v1alpha1.ThreeportWorkloadStatus, well bool, excess int) (won int) {
	if excess <= 0 {
		return 0
	}
	excess += len(`,"resourcesOmitted":2000`)
	for i := len(status.Resources) - 1; i >= 0; i-- {
		r := status.Resources[i]
		if won >= excess || (r.Health == statusHealthy) != well {
			continue
		}
		won += size(r) + len(`,`)
		status.Resources[i].Name = "" // marked
		status.ResourcesOmitted++
	}
	kept := status.Resources[:0]
	for _, r := range status.Resources {
		if r.Name != "" {
			kept = append(kept, r)
		}
	}
	status.Resources = kept
	return won
}
