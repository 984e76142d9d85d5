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

// channel is the PostgreSQL notification channel. The payload is the ID of the sending replica.
const channel = "threeport_workloads_changed"

const (
	// listenBackoff is the first delay before a reconnect; it doubles up to maxBackoff.
	listenBackoff = 100 * time.Millisecond
	maxBackoff    = 10 * time.Second
	// keepaliveInterval is the time without a notification after which the connection is checked.
	keepaliveInterval = time.Minute
)

// notify signals other replicas that rows changed here. It runs outside of the writing transaction, since commits with a
// NOTIFY are serialized (https://www.postgresql.org/docs/current/sql-notify.html), and combines many changes into one
// notification. The polls of other replicas cover a lost one.
func (f *feed) notify(ctx context.Context, replica string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.notifyDue:
		}
		err := f.sendNotify(ctx, replica)
		switch {
		case ctx.Err() != nil:
			return
		case isNotifyUnsupported(err):
			f.db.config.Feed.Log.InfoContext(ctx, "The database does not support NOTIFY; replicas find each other's changes by polling")
			return
		case err != nil:
			f.db.config.Feed.Log.WarnContext(ctx, "Notifying other replicas failed; they find the change by polling", "error", err)
		}
		if !sleep(ctx, feedInterval) {
			return
		}
	}
}

// sendNotify sends one notification.
func (f *feed) sendNotify(ctx context.Context, replica string) error {
	ctx, cancel := f.db.reading(ctx) // it should take no longer than a read
	defer cancel()
	_, err := f.db.write.ExecContext(ctx, "SELECT pg_notify($1, $2)", channel, replica)
	return err
}

// listen signals the feed when other replicas notify. It uses a dedicated connection and reconnects after errors.
func (f *feed) listen(ctx context.Context, replica string) {
	backoff := listenBackoff
	for {
		connected, err := f.listenOnce(ctx, replica)
		if ctx.Err() != nil {
			return
		}
		if isNotifyUnsupported(err) {
			return // notify logs it
		}
		if connected {
			backoff = listenBackoff
		}
		f.db.config.Feed.Log.WarnContext(ctx, "Listening for changes of other replicas failed; polling until it works again",
			"error", err, "retry_in", backoff)
		if !sleep(ctx, backoff) {
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// listenOnce listens on one connection until that fails. It reports whether it was connected.
func (f *feed) listenOnce(ctx context.Context, replica string) (connected bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, f.db.postgres.Copy())
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
	wake(f.changed) // changes from before the LISTEN
	for {
		from, err := nextNotification(ctx, conn)
		if err != nil {
			return true, fmt.Errorf("wait for notification: %w", err)
		}
		if from != replica {
			wake(f.changed)
		}
	}
}

// closeConn closes a connection and ignores errors.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// nextNotification waits for a notification and returns its payload. It pings the connection after each
// keepaliveInterval without one.
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

// isNotifyUnsupported reports whether the database lacks LISTEN and NOTIFY, as CockroachDB does:
// https://www.cockroachlabs.com/docs/stable/postgresql-compatibility.
func isNotifyUnsupported(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	// feature_not_supported, syntax_error, undefined_function
	return ok && slices.Contains([]string{"0A000", "42601", "42883"}, e.Code)
}
