// Package postgres runs a private PostgreSQL from an installed one, for tests and the demo: in a directory of its own, on
// a free port of the loopback interface, with a password that nobody else knows. It needs no service and no
// configuration; Debian's package is enough (internal/testing/postgres-packages.sh).
//
//	if err := postgres.Find(); err != nil {
//		return err // says what to install
//	}
//	server, err := postgres.Start(ctx, postgres.Options{})
//	…
//	defer server.Stop()
//	address, err := server.CreateDatabase(ctx, "mine", "")
//
// PostgreSQL refuses to run as root. Root runs it as the user postgres, or else as nobody.
//
// The server ends with this process, by whatever way this one ends (Linux). [Server.Kill] and [Server.Restart] are for
// tests of what survives a crash.
package postgres
