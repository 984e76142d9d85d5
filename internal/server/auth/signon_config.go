package auth

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"

	"github.com/threeport/threeport-agent/internal/server/auth/openid"
)

// SingleSignOn says who tells whom people are, and what they may. Without an issuer there is none.
type SingleSignOn struct {
	openid.Config

	// ViewerGroups and AdminGroups are whose members are viewers and administrators. Nobody else gets in.
	ViewerGroups, AdminGroups []string
}

func (s SingleSignOn) isSet() bool { return s.Issuer != "" }

// validate says which flag is bad. Enabled tells whether clients are asked who they are at all.
func (s SingleSignOn) validate(enabled bool) error {
	if !s.isSet() {
		if !reflect.DeepEqual(s, DefaultConfig().SingleSignOn) {
			return errors.New("single sign-on without an issuer: give --oidc-issuer too, or no flag that begins with --oidc")
		}
		return nil
	}
	if !enabled {
		return errors.New("single sign-on without authentication: everybody is an administrator then; leave out --auth-enabled=false, or the flags that begin with --oidc")
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("single sign-on: %w", err)
	}
	if u, err := url.Parse(s.RedirectURL); err != nil || u.Path != CallbackPath {
		return fmt.Errorf("single sign-on: redirect URL %q: accepted is the address of this API as browsers have it, with the path %s", s.RedirectURL, CallbackPath)
	}
	if len(s.allGroups()) == 0 || slices.Contains(s.allGroups(), "") {
		return errors.New("single sign-on lets nobody in: give --oidc-viewer-group or --oidc-admin-group, with the name of a group")
	}
	return nil
}

func (s SingleSignOn) allGroups() []string { return slices.Concat(s.ViewerGroups, s.AdminGroups) }

// roleOf is the most that groups allow; ok is false if they allow nothing.
func (s SingleSignOn) roleOf(groups []string) (role Role, ok bool) {
	has := func(group string) bool { return slices.Contains(groups, group) }
	switch {
	case slices.ContainsFunc(s.AdminGroups, has):
		return RoleAdmin, true
	case slices.ContainsFunc(s.ViewerGroups, has):
		return RoleViewer, true
	default:
		return "", false
	}
}
