// Package attribution has the rules by which objects and Events belong to a workload. The agent and the plugin share them, so that
// both see the same objects. It is pure.
package attribution
