package monitoring

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// notification is an alert as Alertmanager sends it.
type notification struct {
	Status              string
	Labels, Annotations map[string]string

	at time.Time // of its arrival
}

// notifications receives those of Alertmanager, and keeps the last change of each alert. It is safe for concurrent use.
type notifications struct {
	mu   sync.Mutex
	last map[string]notification // by the name of the alert
}

// ServeHTTP implements http.Handler.
func (n *notifications) ServeHTTP(answer http.ResponseWriter, req *http.Request) {
	var group struct {
		Status string // firing if one of the alerts fires
		Alerts []notification
	}
	if err := json.NewDecoder(req.Body).Decode(&group); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.last = map[string]notification{}
	}
	for _, alert := range group.Alerts {
		name := alert.Labels["alertname"]
		if alert.at = time.Now(); alert.Status == group.Status && n.last[name].Status != alert.Status {
			n.last[name] = alert
		}
	}
}

func (n *notifications) of(alert string) notification {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[alert]
}
