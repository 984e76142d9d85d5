// Package metricsauth authenticates and authorizes the clients of the agent's metrics, as package filters of controller-runtime
// does. That package needs k8s.io/apiserver, with which the resident memory of the agent grows by half.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Limits of the reviews. They keep clients with invalid tokens from flooding the API server.
const (
	reviewQPS     = 5
	reviewBurst   = 10
	reviewTimeout = 10 * time.Second
)

// How long decisions are kept, and how many.
const (
	grantedTTL   = time.Minute
	refusedTTL   = 10 * time.Second
	maxDecisions = 256
)

var errTooManyReviews = errors.New("too many clients with new tokens wait for a review")

// NewHandler returns a handler that serves with next the clients whose bearer token the API server authenticates (TokenReview) and
// permits to use the path (SubjectAccessReview). It answers 401 without a valid token, 403 without the permission, and 503 if
// the API server does not answer or too many tokens wait for a review.
func NewHandler(config *rest.Config, client *http.Client, next http.Handler, log logr.Logger) (http.Handler, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	permissions, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &handler{
		next: next, log: log, tokens: tokens.TokenReviews(), permissions: permissions.SubjectAccessReviews(),
		decisions: cache.NewLRUExpireCache(maxDecisions), limit: flowcontrol.NewTokenBucketRateLimiter(reviewQPS, reviewBurst),
	}, nil
}

// handler serves the permitted requests with next.
type handler struct {
	next        http.Handler
	log         logr.Logger
	tokens      authenticationclient.TokenReviewInterface
	permissions authorizationclient.SubjectAccessReviewInterface
	decisions   *cache.LRUExpireCache // status codes by request
	limit       flowcontrol.RateLimiter
}

// request is the part of a request that decides about it.
type request struct {
	token      [sha256.Size]byte
	verb, path string
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, err := h.status(r)
	switch {
	case errors.Is(err, errTooManyReviews):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		if r.Context().Err() == nil {
			h.log.Error(err, "The API server cannot review a client of the metrics")
		}
		http.Error(w, "the API server of the cluster cannot review the token", http.StatusServiceUnavailable)
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a valid bearer token is needed", status)
	case status == http.StatusForbidden:
		http.Error(w, "the token does not permit this: see the ClusterRole threeport-agent-metrics-reader", status)
	default:
		h.next.ServeHTTP(w, r)
	}
}

// status returns the status code of the decision on a request; 200 to serve it.
func (h *handler) status(r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := request{token: sha256.Sum256([]byte(token)), verb: strings.ToLower(r.Method), path: r.URL.Path}
	if status, known := h.decisions.Get(key); known {
		return status.(int), nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	if h.limit.Wait(ctx) != nil {
		return 0, errTooManyReviews
	}
	status, err := h.review(ctx, token, key)
	if err != nil {
		return 0, err
	}
	ttl := refusedTTL
	if status == http.StatusOK {
		ttl = grantedTTL
	}
	h.decisions.Add(key, status, ttl)
	return status, nil
}

// review asks the API server.
func (h *handler) review(ctx context.Context, token string, key request) (int, error) {
	client, err := h.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !client.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := client.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	permission, err := h.permissions.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: key.path, Verb: key.verb},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !permission.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
