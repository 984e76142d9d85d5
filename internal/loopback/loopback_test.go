package loopback

import "testing"

func TestIsHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "127.0.0.1.example.org": false, "localhost.example.org": false,
	} {
		if got := IsHost(host); got != want {
			t.Errorf("IsHost(%q) = %t, want %t", host, got, want)
		}
	}
}
