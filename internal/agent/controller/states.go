package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// workloadState is what this process knows of a workload, beside the registry.
type workloadState struct {
	uid       types.UID // of the ThreeportWorkload
	firstSeen time.Time
	// lastWrite is the time of the last write of this process; zero if there was none.
	lastWrite time.Time
	// bucketFullAt is the time at which the bucket is full again: each write adds a statusInterval.
	bucketFullAt time.Time
	// lastTransition is the time of the latest transition that the reporter was given.
	lastTransition time.Time
	// answered is the last reason of the condition Delivered other than Pending; empty before the first Event about it.
	answered string
	// retried is the last value of the annotation for another attempt that this process has handled.
	retried string
	// reportedAgain is the last value of the annotation that requests all reports again; nil before the first reconcile.
	reportedAgain *string
	// deletedSince is when this process first saw the deletion of the workload; zero before.
	deletedSince time.Time
	// excluded is true once the workload was excluded, and that was reported.
	excluded bool
}

// workloadStates holds the state of each workload.
type workloadStates struct {
	mu     sync.Mutex
	byName map[string]*workloadState
	// atStart has the names of the workloads that existed at the start, and are not declared yet. When there are none left, allDeclared
	// is closed.
	atStart     sets.Set[string]
	allDeclared chan struct{}
	// lastReconcile is when a reconcile last succeeded; at first, when the reconciler was made.
	lastReconcile time.Time
}

func newWorkloadStates(now time.Time) *workloadStates {
	return &workloadStates{byName: map[string]*workloadState{}, allDeclared: make(chan struct{}), lastReconcile: now}
}

// update calls f with the state of a workload. That of a workload which is first seen is made. A ThreeportWorkload that was created again
// does not have that of the former one.
func (s *workloadStates) update(wl *v1alpha1.ThreeportWorkload, now time.Time, f func(*workloadState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.byName[wl.Name]
	if w == nil || w.uid != wl.UID {
		w = &workloadState{uid: wl.UID, firstSeen: now}
		s.byName[wl.Name] = w
	}
	f(w)
}

// get returns a copy of the state of a workload.
func (s *workloadStates) get(wl *v1alpha1.ThreeportWorkload, now time.Time) workloadState {
	var state workloadState
	s.update(wl, now, func(w *workloadState) { state = *w })
	return state
}

func (s *workloadStates) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}

func (s *workloadStates) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byName)
}

// setAtStart records, once, the workloads that exist at the start.
func (s *workloadStates) setAtStart(names sets.Set[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atStart = names
	if len(names) == 0 {
		close(s.allDeclared)
	}
}

// takeAtStart reports whether a workload existed at the start, and was not taken before. AllDeclared no longer waits for a taken one.
func (s *workloadStates) takeAtStart(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.atStart.Has(name) {
		return false
	}
	s.atStart.Delete(name)
	if len(s.atStart) == 0 {
		close(s.allDeclared)
	}
	return true
}

func (s *workloadStates) recordReconcile(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastReconcile = now
}

// sinceReconcile returns the time since a reconcile last succeeded; zero if there are no workloads.
func (s *workloadStates) sinceReconcile(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byName) == 0 {
		return 0
	}
	return now.Sub(s.lastReconcile)
}
