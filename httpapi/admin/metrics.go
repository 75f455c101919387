package admin

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxRequestSeries bounds the pairs of action and status that get a series: there
// are some 65 actions and a dozen codes, and most never meet.
const maxRequestSeries = 512

// Metrics gathers what the API port observes of its requests. It is safe for
// concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec

	mu     sync.RWMutex
	series map[requestKey]prometheus.Observer
}

type requestKey struct {
	action string
	status int
}

// NewMetrics makes a registry of its own: nothing is shared with other nodes in
// the process.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "holdfast_http_request_seconds",
			Help:    "Time from the end of a request to the start of its answer; long polls include their wait.",
			Buckets: prometheus.ExponentialBuckets(250e-6, 2, 18), // to 33 s; a long poll takes up to 20
		}, []string{"action", "code"}),
		series: map[requestKey]prometheus.Observer{},
	}
	m.registry.MustRegister(m.requests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// ObserveRequest records one answer with its HTTP status. Beyond
// maxRequestSeries pairs of action and status, all is counted as action "other".
func (m *Metrics) ObserveRequest(action string, status int, d time.Duration) {
	key := requestKey{action, status}
	m.mu.RLock()
	observer, ok := m.series[key]
	m.mu.RUnlock()
	if !ok {
		observer = m.newSeries(key)
	}
	observer.Observe(d.Seconds())
}

func (m *Metrics) newSeries(key requestKey) prometheus.Observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.series) >= maxRequestSeries {
		return m.requests.WithLabelValues("other", "")
	}
	observer := m.requests.WithLabelValues(key.action, strconv.Itoa(key.status))
	m.series[key] = observer
	return observer
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
