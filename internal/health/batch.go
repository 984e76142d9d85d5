package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// batchRules are of what runs to an end.
var batchRules = map[schema.GroupKind]rule{
	jobKind:     named(job),
	cronJobKind: named(cronJob),
}

var (
	jobKind     = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJobKind = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)
