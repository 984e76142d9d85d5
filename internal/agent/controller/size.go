package controller

import (
	"encoding/json"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// Sizes in bytes of JSON, the encoding in which custom resources are stored. etcd limits an object to 1.5 MiB.
const (
	// maxObjectBytes limits a ThreeportWorkload.
	maxObjectBytes = 1_250_000
	// minStatusBytes is always available to the status, however large the spec is. A status without resources takes at
	// most half of it.
	minStatusBytes = 64_000
	// minMessageBytes is the length to which truncateToSize reduces the message of a resource.
	minMessageBytes = 40
)

// truncateToSize makes a status small enough to be stored together with the rest of the object. In this order it removes reported
// versions, times of changes of health, most of the messages, Healthy resources and other resources, each beginning with the last
// resource.
func truncateToSize(status *v1alpha1.ThreeportWorkloadStatus, restBytes int) {
	total := jsonBytes(status)
	if total <= minStatusBytes {
		return
	}
	excess := total - max(maxObjectBytes-restBytes, minStatusBytes)
	excess -= removeVersions(status.Resources, excess)
	excess -= removeTimes(status.Resources, excess)
	excess -= truncateMessages(status.Resources, excess)
	for _, healthy := range []bool{true, false} {
		excess -= omitResources(status, healthy, excess)
	}
}

// jsonBytes returns the size of a value in JSON.
func jsonBytes(v any) int {
	text, err := json.Marshal(v)
	if err != nil { // The types of the API never fail to encode.
		return 0
	}
	return len(text)
}

// removeVersions removes reported versions until the excess is gone, and returns the number of bytes saved.
func removeVersions(resources []v1alpha1.ResourceStatus, excess int) (saved int) {
	for i := len(resources) - 1; i >= 0 && saved < excess; i-- {
		if r := &resources[i]; r.ReportedResourceVersion != "" {
			saved += len(`,"reportedResourceVersion":""`) + len(r.ReportedResourceVersion)
			r.ReportedResourceVersion = ""
		}
	}
	return saved
}

// removeTimes removes the times of changes of health until the excess is gone, and returns the number of bytes saved.
func removeTimes(resources []v1alpha1.ResourceStatus, excess int) (saved int) {
	for i := len(resources) - 1; i >= 0 && saved < excess; i-- {
		if r := &resources[i]; r.HealthSince != nil {
			saved += len(`,"healthSince":`) + jsonBytes(r.HealthSince)
			r.HealthSince = nil
		}
	}
	return saved
}

// truncateMessages shortens messages until the excess is gone, and returns the number of bytes saved.
func truncateMessages(resources []v1alpha1.ResourceStatus, excess int) (saved int) {
	for i := len(resources) - 1; i >= 0 && saved < excess; i-- {
		r := &resources[i]
		saved += jsonBytes(r.Message)
		r.Message = truncate(r.Message, minMessageBytes)
		saved -= jsonBytes(r.Message)
	}
	return saved
}

// omitResources removes resources that are Healthy, or that are not, until the excess is gone, and returns the number of
// bytes saved.
func omitResources(status *v1alpha1.ThreeportWorkloadStatus, healthy bool, excess int) (saved int) {
	if excess <= 0 {
		return 0
	}
	excess += len(`,"resourcesOmitted":2000`)
	first := len(status.Resources) // index of the first resource that may be omitted
	for ; first > 0 && saved < excess; first-- {
		if r := status.Resources[first-1]; (r.Health == statusHealthy) == healthy {
			saved += jsonBytes(r) + len(`,`)
		}
	}
	kept := status.Resources[:first]
	for _, r := range status.Resources[first:] {
		if (r.Health == statusHealthy) == healthy {
			status.ResourcesOmitted++
		} else {
			kept = append(kept, r)
		}
	}
	status.Resources = kept
	return saved
}
