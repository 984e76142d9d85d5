package metricsauth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewer is an API server that knows the tokens "reader" and "stranger", and permits "reader" to get /metrics.
type reviewer struct{ reviews atomic.Int64 }

func (v *reviewer) RoundTrip(r *http.Request) (*http.Response, error) {
	v.reviews.Add(1)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var answer any
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			return nil, err
		}
		review.Status.Authenticated = review.Spec.Token == "reader" || review.Spec.Token == "stranger"
		review.Status.User = authenticationv1.UserInfo{
			Username: review.Spec.Token, Groups: []string{"group"}, Extra: map[string]authenticationv1.ExtraValue{"key": {"value"}},
		}
		answer = review
	} else {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			return nil, err
		}
		s := review.Spec
		review.Status.Allowed = s.User == "reader" && s.Groups[0] == "group" && s.Extra["key"][0] == "value" &&
			*s.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		answer = review
	}
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(string(body))),
	}, err
}

// newHandler returns a handler that answers 200 to permitted clients.
func newHandler(t *testing.T, apiServer http.RoundTripper) http.Handler {
	t.Helper()
	config := &rest.Config{ // without a limit, like that of the manager
		Host: "http://api.invalid", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	handler, err := NewHandler(config, &http.Client{Transport: apiServer}, ok, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func send(ctx context.Context, handler http.Handler, method, path, authorization string) int {
	r := httptest.NewRequestWithContext(ctx, method, path, http.NoBody)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	return answer.Code
}

func TestFilter_Decisions(t *testing.T) {
	for _, tt := range []struct {
		reason, method, path, authorization string
		want                                int
	}{
		{"no token", "GET", "/metrics", "", http.StatusUnauthorized},
		{"an empty token", "GET", "/metrics", "Bearer ", http.StatusUnauthorized},
		{"another scheme", "GET", "/metrics", "Basic reader", http.StatusUnauthorized},
		{"an invalid token", "GET", "/metrics", "Bearer invalid", http.StatusUnauthorized},
		{"a token without the permission", "GET", "/metrics", "Bearer stranger", http.StatusForbidden},
		{"another path", "GET", "/debug", "Bearer reader", http.StatusForbidden},
		{"another method", "POST", "/metrics", "Bearer reader", http.StatusForbidden},
		{"a token with the permission", "GET", "/metrics", "Bearer reader", http.StatusOK},
		{"the scheme in lower case", "GET", "/metrics", "bearer reader", http.StatusOK},
	} {
		if got := send(t.Context(), newHandler(t, &reviewer{}), tt.method, tt.path, tt.authorization); got != tt.want {
			t.Errorf("%s: the answer is %d, want %d", tt.reason, got, tt.want)
		}
	}
}

func TestFilter_Decisions_AreKeptForSomeTime(t *testing.T) {
	for _, tt := range []struct {
		authorization string
		want          int
		reviews       int64 // of a decision: of the token and of the permission
		ttl           time.Duration
	}{
		{"Bearer reader", http.StatusOK, 2, grantedTTL},
		{"Bearer stranger", http.StatusForbidden, 2, refusedTTL},
		{"Bearer invalid", http.StatusUnauthorized, 1, refusedTTL},
	} {
		synctest.Test(t, func(t *testing.T) {
			apiServer := &reviewer{}
			handler := newHandler(t, apiServer)
			for _, step := range []struct {
				after   time.Duration
				reviews int64
			}{{0, tt.reviews}, {tt.ttl - time.Second, tt.reviews}, {2 * time.Second, 2 * tt.reviews}} {
				time.Sleep(step.after)
				if got := send(t.Context(), handler, "GET", "/metrics", tt.authorization); got != tt.want {
					t.Errorf("%s: the answer is %d, want %d", tt.authorization, got, tt.want)
				}
				if got := apiServer.reviews.Load(); got != step.reviews {
					t.Errorf("%s: %d reviews, want %d", tt.authorization, got, step.reviews)
				}
			}
		})
	}
}

// A decision is not kept if the API server does not answer, so the next scrape succeeds.
func TestFilter_NoAPIServer_IsUnavailable(t *testing.T) {
	apiServer := &restartingServer{away: true}
	handler := newHandler(t, apiServer)
	if got := send(t.Context(), handler, "GET", "/metrics", "Bearer reader"); got != http.StatusServiceUnavailable {
		t.Errorf("without an API server the answer is %d, want %d", got, http.StatusServiceUnavailable)
	}
	apiServer.away = false
	if got := send(t.Context(), handler, "GET", "/metrics", "Bearer reader"); got != http.StatusOK {
		t.Errorf("with an API server the answer is %d, want %d", got, http.StatusOK)
	}
}

type restartingServer struct {
	reviewer
	away bool
}

func (s *restartingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.away {
		return nil, fmt.Errorf("no connection to %s", r.URL.Host)
	}
	return s.reviewer.RoundTrip(r)
}

func TestFilter_InvalidTokens_AreReviewedAtLimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apiServer := &reviewer{}
		handler := newHandler(t, apiServer)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var clients sync.WaitGroup
		for i := range 100 {
			clients.Go(func() {
				if got := send(ctx, handler, "GET", "/metrics", fmt.Sprintf("Bearer invalid-%d", i)); got == http.StatusOK {
					t.Errorf("an invalid token is served")
				}
			})
		}
		clients.Wait()
		if n := apiServer.reviews.Load(); n == 0 || n > reviewBurst+reviewQPS+1 {
			t.Errorf("the API server reviews %d of 100 tokens within a second, want 1 to %d", n, reviewBurst+reviewQPS+1)
		}
	})
}
