package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// channel is what replicas listen to. The payload names the one that changed something.
const channel = "threeport_workloads_changed"

const (
	// listenBackoff is the first time to wait before connecting again, and its double the second, up to maxBackoff.
	listenBackoff = 100 * time.Millisecond
	maxBackoff    = 10 * time.Second
	// aliveAfter is for how long nothing may be heard before the connection is tried.
	keepaliveInterval = time.Minute
)

// notify tells other replicas that something has changed here: not in the transaction that did it, since commits with a
// NOTIFY wait for each other (https://www.postgresql.org/docs/current/sql-notify.html), and once for many. What gets lost
// is found by the others' polls.
func (s *Store) notify(ctx context.Context, replica string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.feed.notifyDue:
		}
		err := s.sendNotify(ctx, replica)
		switch {
		case ctx.Err() != nil:
			return
		case isNotifyUnsupported(err):
			s.config.Feed.Log.InfoContext(ctx, "The database has no NOTIFY; changes through other replicas are found by polling")
			return
		case err != nil:
			s.config.Feed.Log.WarnContext(ctx, "Other replicas cannot be told of a change; they will find it by polling", "error", err)
		}
		if !sleep(ctx, feedInterval) {
			return
		}
	}
}

// tell tells others of this replica, unless the database does not take it in time.
func (s *Store) sendNotify(ctx context.Context, replica string) error {
	ctx, cancel := s.reading(ctx) // which it does as quickly as it reads
	defer cancel()
	_, err := s.write.ExecContext(ctx, "SELECT pg_notify($1, $2)", channel, replica)
	return err
}

// listen wakes the feed when other replicas change something, on a connection of its own that is made again when it is
// lost.
func (s *Store) listen(ctx context.Context, replica string) {
	backoff := listenBackoff
	for {
		connected, err := s.listenOnce(ctx, replica)
		if ctx.Err() != nil {
			return
		}
		if isNotifyUnsupported(err) {
			return // of which notify tells
		}
		if connected {
			backoff = listenBackoff
		}
		s.config.Feed.Log.WarnContext(ctx, "Changes through other replicas are found by polling until the database can be listened to",
			"error", err, "retry_in", backoff)
		if !sleep(ctx, backoff) {
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// hear listens on one connection until that fails, and tells whether it was made.
func (s *Store) listenOnce(ctx context.Context, replica string) (connected bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, s.postgres.Copy())
	if err != nil {
		return false, fmt.Errorf("connect to listen: %w", err)
	}
	defer closeConn(context.WithoutCancel(ctx), conn)
	asking, cancel := context.WithTimeout(ctx, keepaliveInterval)
	_, err = conn.Exec(asking, "LISTEN "+channel)
	cancel()
	if err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	wake(s.feed.changed) // what happened before was not heard
	for {
		from, err := nextNotification(ctx, conn)
		if err != nil {
			return true, fmt.Errorf("wait for notification: %w", err)
		}
		if from != replica {
			wake(s.feed.changed)
		}
	}
}

// hangUp closes a connection that is of no more use, whatever comes of it.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// nextNotification waits for one, and returns its payload. While there is none it tries now and then whether the
// connection is alive.
func nextNotification(ctx context.Context, conn *pgx.Conn) (payload string, err error) {
	for {
		waiting, cancel := context.WithTimeout(ctx, keepaliveInterval)
		notification, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			return notification.Payload, nil
		case ctx.Err() != nil || conn.IsClosed():
			return "", err
		}
		trying, cancel := context.WithTimeout(ctx, keepaliveInterval)
		err = conn.Ping(trying)
		cancel()
		if err != nil {
			return "", err
		}
	}
}

// lacksNotify tells that the database knows no LISTEN or NOTIFY, as CockroachDB does not:
// https://www.cockroachlabs.com/docs/stable/postgresql-compatibility.
func isNotifyUnsupported(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	// feature_not_supported, syntax_error, undefined_function
	return ok && slices.Contains([]string{"0A000", "42601", "42883"}, e.Code)
}
