package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes a database and returns its address. It is a copy of the template, to which nobody may be
// connected; empty stands for an empty one.
func (s *Server) CreateDatabase(ctx context.Context, name, template string) (address string, err error) {
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize()
	if template != "" {
		statement += " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	}
	if err := s.exec(ctx, statement); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return s.Address(name), nil
}

// DropDatabase removes a database, and ends the connections to it.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	if err := s.exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func (s *Server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.Address("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
