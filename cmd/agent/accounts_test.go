package main

import (
	"maps"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/controller"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestTheControllerIsToldWhatWasAccepted(t *testing.T) {
	instance := target.Instance{Type: target.WorkloadInstance, ID: 1}
	box := outbox.New(outbox.Config{}, nil)
	want := map[target.Resource]controller.Operation{}
	for name, versions := range map[string][]string{"added": {"1"}, "modified": {"1", "2"}, "deleted": {"1", ""}} {
		resource := target.Resource{Ref: target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: name}, ID: 7}
		for _, version := range versions {
			box.Offer(observe.Operation{
				Attribution: target.Attribution{Instance: instance, Resource: resource, Listed: true},
				Object:      target.Identity{Ref: resource.Ref, UID: "u"}, ResourceVersion: version, Deleted: version == "",
			})
			item, err := box.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			box.Ack(item, outbox.Receipt{})
		}
		last := versions[len(versions)-1]
		want[resource] = controller.Operation{
			Name: map[string]string{"added": "ADDED", "modified": "MODIFIED", "deleted": "DELETED"}[name], ResourceVersion: last,
		}
	}
	if got := (accounts{Outbox: box}).Progress(instance).Operations; !maps.Equal(got, want) {
		t.Errorf("told is %v, want %v", got, want)
	}
}
