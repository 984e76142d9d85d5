package leader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLock is a lock that can fail, after some time.
type fakeLock struct {
	resourcelock.Interface
	takes time.Duration
	err   error
}

func (f *fakeLock) Identity() string { return "me" }

func (f *fakeLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return f.Update(ctx, r)
}

func (f *fakeLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(f.takes)
	return f.err
}

func TestLease_HeldUntilTheRenewDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &fakeLock{}
		l := &Lease{Interface: lock}
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
		expect := func(want bool, why string) {
			t.Helper()
			if err := l.Held(); (err == nil) != want {
				t.Errorf("%s: %v", why, err)
			}
		}
		expect(false, "it was never taken")
		if err := l.Create(t.Context(), mine); err != nil {
			t.Error(err)
		}
		expect(true, "it is taken")
		time.Sleep(renewDeadline - 1)
		expect(true, "it was taken a moment less than the deadline ago")
		time.Sleep(time.Nanosecond)
		expect(false, "its time is over")
		lock.takes = 3 * time.Second
		if err := l.Update(t.Context(), mine); err != nil {
			t.Error(err)
		}
		time.Sleep(renewDeadline - 3*time.Second)
		expect(false, "others saw the renewal when it began")
		lock.takes, lock.err = 0, errors.New("conflict")
		if err := l.Update(t.Context(), mine); err == nil {
			t.Error("the error is lost")
		}
		expect(false, "it could not be renewed")
		lock.err = nil
		_ = l.Update(t.Context(), mine) // it cannot fail
		expect(true, "it is renewed")
		_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: ""})
		expect(false, "it is released")
	})
}

// The configuration of the other clients stays as it is: a timeout would end their watches.
func TestNewLease_LeavesConfiguration(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if _, err := NewLease(config, "system"); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "" {
		t.Errorf("the configuration has the timeout %s and the user agent %q, want none", config.Timeout, config.UserAgent)
	}
}
