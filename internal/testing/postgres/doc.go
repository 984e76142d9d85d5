// Package postgres runs a private PostgreSQL server from the installed programs, for tests and tools. The server has its own
// directory, a free port of the loopback interface and a random password. It needs no service and no configuration; Debian's
// package is enough (hack/packages.sh postgres).
//
//	if err := postgres.Installed(); err != nil {
//		return err // says how to install it
//	}
//	server, err := postgres.Start(ctx, postgres.Options{})
//	…
//	defer server.Stop()
//	address, err := server.CreateDatabase(ctx, "mine", "")
//
// PostgreSQL refuses to run as root, so root runs it as the user `postgres` or `nobody`.
//
// On Linux the server ends with this process, however that ends. [Server.Kill], [Server.Freeze] and [Server.Restart] are for
// tests of failures.
package postgres
