package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// storageRules has the rules of volumes and devices.
var storageRules = map[schema.GroupKind]rule{
	{Kind: "PersistentVolumeClaim"}:                                             volumeClaim,
	{Kind: "PersistentVolume"}:                                                  persistentVolume,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                         volumeAttachment,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}:                  volumeSnapshot,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotContent"}:           volumeSnapshot,
	{Group: "groupsnapshot.storage.k8s.io", Kind: "VolumeGroupSnapshot"}:        volumeSnapshot,
	{Group: "groupsnapshot.storage.k8s.io", Kind: "VolumeGroupSnapshotContent"}: volumeSnapshot,
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                           resourceClaim,
}

// volumeClaim assesses a PersistentVolumeClaim by its phase, and a bound one by its resize.
//
// Source: status.phase of a PersistentVolumeClaim.
func volumeClaim(s *fields, ctx Context) Assessment {
	switch phase := s.text("status", "phase"); phase {
	case "Bound":
		return boundClaim(s, ctx)
	case "Lost":
		return verdict(Down, "Lost", s.subject()+" has lost its volume")
	case "", "Pending":
		return unboundClaim(s, ctx)
	default:
		return verdict(Unknown, camelReason(phase, "Phase"), quote(s.subject()+" has an unknown phase", phase))
	}
}

// unboundClaim assesses a claim that is Pending. Without a limit a claim waits for its first consumer, if its class binds
// then. There is a limit if any of these holds:
//   - a provisioner was asked,
//   - a node was selected,
//   - the claim names a volume,
//   - the claim has no class.
//
// Source: https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode; the annotations
// volume.kubernetes.io/storage-provisioner and volume.kubernetes.io/selected-node; the Event ProvisioningFailed.
func unboundClaim(s *fields, ctx Context) Assessment {
	message := s.subject() + " is not bound"
	if w := ctx.Warning; w.Reason != "" {
		a := verdict(Down, camelReason(w.Reason, "Pending"), quote(message, w.Message))
		a.Since = s.created()
		return a
	}
	annotations := s.table("metadata", "annotations")
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { text, _ := annotations[name].(string); return text != "" })
	}
	class, volume := s.text("spec", "storageClassName"), s.text("spec", "volumeName")
	switch {
	case volume != "":
		message += " to the volume " + volume
	case has("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"):
		message += ": its volume is being provisioned"
	case has("volume.kubernetes.io/selected-node"):
		message += ": a pod on a node waits for it"
	case class == "":
		message += ": it names no storage class, and no volume fits"
	default:
		return verdict(Reconciling, "Pending", message+": it waits for its first consumer, or for a volume of the class "+class)
	}
	return pending(ctx, s.created(), binding, Down, "Pending", message)
}

// boundClaim assesses a bound claim by whether it has the declared size.
//
// Source: status.allocatedResourceStatuses, status.modifyVolumeStatus, status.capacity and the conditions Resizing,
// FileSystemResizePending, ModifyingVolume, ControllerResizeError, NodeResizeError, ModifyVolumeError and VolumeResizeError.
func boundClaim(s *fields, ctx Context) Assessment {
	for _, bad := range []string{"ControllerResizeError", "NodeResizeError", "ModifyVolumeError", "VolumeResizeError"} {
		if c := s.condition(bad); c.status == "True" {
			a := verdict(Unhealthy, bad, quote(s.subject()+" cannot be changed as declared", c.message))
			a.Since = c.since
			return a
		}
	}
	statuses := s.table("status", "allocatedResourceStatuses")
	states := []any{s.text("status", "modifyVolumeStatus", "status")}
	for _, name := range slices.Sorted(maps.Keys(statuses)) {
		states = append(states, statuses[name])
	}
	for _, state := range states {
		if text, _ := state.(string); strings.Contains(text, "Infeasible") {
			return verdict(Unhealthy, camelReason(text, "Infeasible"), s.subject()+" cannot be changed as declared: its driver refuses")
		}
	}
	for _, busy := range []string{"Resizing", "FileSystemResizePending", "ModifyingVolume"} {
		if c := s.condition(busy); c.status == "True" {
			if busy == "FileSystemResizePending" { // has no limit, because it needs a pod
				return verdict(Reconciling, busy, s.subject()+" is larger once a pod mounts it")
			}
			return pending(ctx, c.since, convergence, Unhealthy, busy, quote(s.subject()+" is being changed", c.message))
		}
	}
	want, have := s.quantity("spec", "resources", "requests", "storage"), s.quantity("status", "capacity", "storage")
	if want != nil && have != nil && have.Cmp(*want) < 0 {
		return verdict(Reconciling, "Resizing", fmt.Sprintf("%s has %s of the %s that it wants", s.subject(), have, want))
	}
	return healthy
}

// quantity returns an amount; nil if there is none.
func (f *fields) quantity(path ...string) *resource.Quantity {
	text := f.text(path...)
	if text == "" {
		return nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		f.note(path...)
		return nil
	}
	return &q
}

// persistentVolume assesses a PersistentVolume by its phase.
//
// Source: status.phase, status.message and status.lastPhaseTransitionTime of a PersistentVolume;
// spec.persistentVolumeReclaimPolicy.
func persistentVolume(s *fields, ctx Context) Assessment {
	since := s.time("status", "lastPhaseTransitionTime")
	detail := s.text("status", "message")
	var a Assessment
	switch phase := s.text("status", "phase"); phase {
	case "Bound", "Available":
		return healthy
	case "Failed":
		a = verdict(Down, "Failed", quote(s.subject()+" could not be reclaimed", detail))
	case "Released":
		if s.text("spec", "persistentVolumeReclaimPolicy") == "Delete" {
			return pending(ctx, since, binding, Unhealthy, "Released", quote(s.subject()+" is to be deleted, since its claim is gone", detail))
		}
		a = verdict(Unhealthy, "Released", s.subject()+" is kept for a claim that is gone, and no other claim can have it")
	case "", "Pending":
		return pending(ctx, cmp.Or(since, s.created()), binding, Unhealthy, "Pending", quote(s.subject()+" is not available yet", detail))
	default:
		return verdict(Unknown, camelReason(phase, "Phase"), quote(s.subject()+" has an unknown phase", phase))
	}
	a.Since = since
	return a
}

// volumeAttachment assesses a VolumeAttachment.
//
// Source: status.attached, status.attachError and status.detachError of a VolumeAttachment.
func volumeAttachment(s *fields, ctx Context) Assessment {
	for _, name := range []string{"attachError", "detachError"} {
		if s.table("status", name) == nil {
			continue
		}
		what := map[string]string{"attachError": "attached to", "detachError": "detached from"}[name]
		a := verdict(Down, camelCase(name), quote(s.subject()+": the volume cannot be "+what+" the node", s.text("status", name, "message")))
		a.Since = s.time("status", name, "time")
		return a
	}
	if s.flag("status", "attached") {
		return healthy
	}
	return pending(ctx, s.created(), binding, Down, "Attaching", s.subject()+": the volume is not attached to the node yet")
}

// volumeSnapshot assesses a snapshot of a volume, or of a group of volumes.
//
// Source: status.readyToUse and status.error of a VolumeSnapshot; the driver tries again after an error, and removes it
// when it succeeds.
func volumeSnapshot(s *fields, ctx Context) Assessment {
	if failure := s.table("status", "error"); len(failure) > 0 {
		a := verdict(Down, "SnapshotError", quote(s.subject()+" could not be taken", s.text("status", "error", "message")))
		a.Since = s.time("status", "error", "time")
		return a
	}
	if s.flag("status", "readyToUse") {
		return healthy
	}
	return pending(ctx, s.created(), convergence, Unhealthy, "NotReadyToUse", s.subject()+" is not ready to use yet")
}

// resourceClaim assesses a ResourceClaim. It may wait for its first pod without a limit.
//
// Source: status.allocation and status.devices[].conditions of a ResourceClaim.
func resourceClaim(s *fields, ctx Context) Assessment {
	if s.table("status", "allocation") == nil {
		return verdict(Reconciling, "NotAllocated", s.subject()+" has no device yet: it waits for a pod, or for a device")
	}
	for i, item := range s.list("status", "devices") {
		device, ok := item.(map[string]any)
		if !ok {
			s.note("status", "devices")
			continue
		}
		name := fmt.Sprint(i + 1)
		if text, ok := device["device"].(string); ok {
			name = text
		}
		if device["conditions"] == nil {
			continue
		}
		inner := &fields{kind: s.kind, object: map[string]any{
			"metadata": s.object["metadata"], "status": map[string]any{"conditions": device["conditions"]},
		}}
		if c := inner.condition("Ready"); c.status == "False" {
			return unmet(s, ctx, "Ready", condition{c.status, c.reason, "device " + name + " " + c.message, c.since, false})
		}
		if inner.malformed != "" {
			s.note("status", "devices", "conditions")
		}
	}
	return healthy
}
