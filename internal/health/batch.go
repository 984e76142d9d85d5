package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// batchRules has the rules of kinds that run to an end.
var batchRules = map[schema.GroupKind]rule{
	jobKind:     job,
	cronJobKind: cronJob,
}

var (
	jobKind     = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJobKind = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)
