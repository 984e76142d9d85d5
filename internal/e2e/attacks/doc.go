// Package attacks attacks the built control-plane API over HTTPS, as a principal with few rights can. Each test holds a finding of
// the security review. The API runs as a process with the flags and the environment of config/controlplane, on each database.
//
// The memory tests compare the peak of the resident memory with a bound. Their data is as small as it may be to exceed the bound
// without the defence that they test. -events=600000 is the size of the finding, and -measure=30s also compares the latency of
// honest agents with and without the attack.
package attacks
