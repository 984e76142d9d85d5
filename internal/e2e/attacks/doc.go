// Package attacks attacks the built control-plane API over HTTPS, as a principal with few rights can. Each test holds a finding of
// the security review. The API runs as a process with the flags and the environment of config/controlplane, on each database.
//
// The memory tests compare the peak of the resident memory with a bound. Their data is as small as it may be to exceed the bound
// without the defence that they test. -events=600000 is the size of the finding. -measure=30s also compares the latency of
// honest agents without the attack, with it on another server, and with it on the API.
package attacks
