package informers

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// The cache keeps the same of a Pod, whether it was decoded whole or by its watched form.
func TestWatchedPod_CachesTheSameAsAWholePod(t *testing.T) {
	scheduled := &corev1.Pod{}
	fill(t, reflect.ValueOf(scheduled).Elem(), "pod")
	scheduled.Labels = map[string]string{v1alpha1.LabelWorkloadInstance: "1", appsv1.ControllerRevisionHashLabelKey: "web-1"}
	scheduled.Annotations = map[string]string{v1alpha1.AnnotationEvents: v1alpha1.EventsDrop}
	scheduled.Spec.Volumes[0].PersistentVolumeClaim = nil
	for i := range scheduled.Spec.Containers { // so that the image is that of the spec
		scheduled.Status.ContainerStatuses[i].Name = scheduled.Spec.Containers[i].Name
		scheduled.Status.InitContainerStatuses[i].Name = scheduled.Spec.InitContainers[i].Name
	}
	waiting := scheduled.DeepCopy()
	waiting.Spec.NodeName = ""
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "bare", UID: "u", ResourceVersion: "1"}}
	// A Pod with few fields comes last: it has nothing of those that were decoded before it.
	for _, test := range []struct {
		name string
		pod  *corev1.Pod
	}{{"all fields", scheduled}, {"not scheduled", waiting}, {"few fields", bare}} {
		name, pod := test.name, test.pod
		got, ok := decodeWatched(t, pod).(*cachedPod)
		if !ok {
			t.Fatalf("%s: the watch decodes a Pod as %T", name, got)
		}
		whole, err := newCachedPod(pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		want := trimPod(pod.DeepCopy())
		for form, cached := range map[string]*cachedPod{"watched": got, "whole": whole} {
			if !apiequality.Semantic.DeepEqual(cached.pod(), &want) {
				t.Errorf("%s, from the %s Pod: the cache has\n     %v, want\n     %v", name, form, cached.pod(), &want)
			}
			metadata := want.ObjectMeta.DeepCopy()
			metadata.CreationTimestamp = metav1.Time{}
			if metadata.DeletionTimestamp != nil {
				metadata.DeletionTimestamp = &metav1.Time{}
			}
			if got := cached.GetObjectMeta().GetResourceVersion(); got != want.ResourceVersion {
				t.Errorf("%s, from the %s Pod: the version is %q, want %q", name, form, got, want.ResourceVersion)
			}
			if !apiequality.Semantic.DeepEqual(cached.metadata(), metadata) {
				t.Errorf("%s, from the %s Pod: the metadata are\n     %v, want\n     %v", name, form, cached.metadata(), metadata)
			}
		}
		encoded, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		decoded := &corev1.Pod{}
		if err := podFields.unmarshal(encoded, decoded); err != nil || len(decoded.ManagedFields)+len(decoded.Spec.Tolerations) > 0 {
			t.Errorf("%s: fields are decoded that the cache does not keep, with the error %v", name, err)
		}
	}
}

func TestWatchedEvent_CachesTheSameAsAWholeEvent(t *testing.T) {
	full := &corev1.Event{}
	fill(t, reflect.ValueOf(full).Elem(), "event")
	modern := full.DeepCopy()
	modern.Source = corev1.EventSource{}
	bare := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "bare", UID: "u", ResourceVersion: "1"}}
	for _, test := range []struct {
		name string
		ev   *corev1.Event
	}{{"all fields", full}, {"without a source", modern}, {"few fields", bare}} {
		name, ev := test.name, test.ev
		watched, ok := decodeWatched(t, ev).(*cachedEvent)
		if !ok {
			t.Fatalf("%s: the watch decodes an Event as %T", name, watched)
		}
		before := ev.DeepCopy()
		whole := newCachedEvent(ev)
		if !reflect.DeepEqual(ev, before) {
			t.Errorf("%s: the Event is\n     %v after it was cached, want\n     %v", name, ev, before)
		}
		want := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: ev.Namespace, Name: ev.Name, UID: ev.UID, ResourceVersion: ev.ResourceVersion, CreationTimestamp: ev.CreationTimestamp,
			},
			InvolvedObject: corev1.ObjectReference{
				APIVersion: ev.InvolvedObject.APIVersion, Kind: ev.InvolvedObject.Kind, Namespace: ev.InvolvedObject.Namespace,
				Name: ev.InvolvedObject.Name, UID: ev.InvolvedObject.UID,
			},
			Type: ev.Type, Reason: ev.Reason, Message: ev.Message, Source: corev1.EventSource{Component: cmp.Or(ev.Source.Component, ev.ReportingController)},
			Count: ev.Count, Series: ev.Series, FirstTimestamp: ev.FirstTimestamp, LastTimestamp: ev.LastTimestamp, EventTime: ev.EventTime,
		}
		for form, cached := range map[string]*cachedEvent{"watched": watched, "whole": whole} {
			if got := cached.event(); !apiequality.Semantic.DeepEqual(got, want) {
				t.Errorf("%s, from the %s Event: the cache has\n     %v, want\n     %v", name, form, got, want)
			}
			if got := cached.GetObjectMeta(); !apiequality.Semantic.DeepEqual(got, &want.ObjectMeta) {
				t.Errorf("%s, from the %s Event: the metadata are\n     %v, want\n     %v", name, form, got, &want.ObjectMeta)
			}
		}
	}
}

// A watch that fails delivers a Status, and one that goes on a bookmark: a Pod with the annotations of its metadata.
func TestWatchCodecs_DecodeStatusAndBookmark(t *testing.T) {
	failure, ok := decodeWatched(t, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired,
	}).(*metav1.Status)
	if !ok || failure.Reason != metav1.StatusReasonExpired {
		t.Errorf("the watch decodes a Status as %T, reason %v", failure, failure)
	}
	bookmark, ok := decodeWatched(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}).(*corev1.Pod)
	if !ok || bookmark.ResourceVersion != "7" || bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("the watch decodes a bookmark as %v, want version 7 and the annotation", bookmark)
	}
}

// Other clients of the process decode whole objects.
func TestWatchCodecs_LeaveThoseOfClientGoAsTheyAre(t *testing.T) {
	newWatchCodecs().SupportedMediaTypes()
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		if _, ok := info.Serializer.(objectSerializer); ok {
			t.Errorf("client-go decodes %s without the fields that the cache does not keep", info.MediaType)
		}
	}
}

func TestProtoFields_MalformedMessage_IsAnError(t *testing.T) {
	data, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := podFields.unmarshal(data[:len(data)-1], &corev1.Pod{}); err == nil {
		t.Error("a message without its last byte is decoded, want an error")
	}
}

// decodeWatched decodes an object as a watch does.
func decodeWatched(t *testing.T, obj runtime.Object) runtime.Object {
	t.Helper()
	switch obj.(type) {
	case *corev1.Pod:
		obj.GetObjectKind().SetGroupVersionKind(podKind)
	case *corev1.Event:
		obj.GetObjectKind().SetGroupVersionKind(eventKind)
	}
	encoded, err := runtime.Encode(protobuf.NewSerializer(nil, nil), obj)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := (&metav1.WatchEvent{Type: string(watch.Modified), Object: runtime.RawExtension{Raw: encoded}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	object, stream, framer, err := runtime.NewClientNegotiator(newWatchCodecs(), corev1.SchemeGroupVersion).StreamDecoder(runtime.ContentTypeProtobuf, nil)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	if _, err := framer.NewFrameWriter(&body).Write(frame); err != nil {
		t.Fatal(err)
	}
	reader := framer.NewFrameReader(io.NopCloser(&body))
	kind, out, err := restwatch.NewDecoder(streaming.NewDecoder(reader, stream), object).Decode()
	if err != nil || kind != watch.Modified {
		t.Fatalf("decode a frame: %q, %v", kind, err)
	}
	return out
}

// fill sets all fields, each to another value.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	at := time.Unix(1_700_000_000+int64(len(path)), 0)
	switch o := v.Addr().Interface().(type) {
	case *metav1.Time:
		o.Time = at
		return
	case *metav1.MicroTime:
		o.Time = at
		return
	case *apiresource.Quantity:
		*o = apiresource.MustParse("1")
		return
	case *metav1.FieldsV1:
		*o = *metav1.NewFieldsV1(`{"f:spec":{}}`)
		return
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		v.SetString(path)
	case kind == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(len(path)))
	case kind == reflect.Uint8:
		v.SetUint(7)
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case kind == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), fmt.Sprint(path, i))
		}
	case kind == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, path+".key")
		fill(t, value, path+".value")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				fill(t, v.Field(i), path+"."+field.Name)
			}
		}
	default:
		t.Fatalf("%s is a %s, which fill does not set", path, v.Type())
	}
}
