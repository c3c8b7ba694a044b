package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ctxdir/ctxdir/api"
	"github.com/ctxdir/ctxdir/server/users"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics count what the server does. No label has an id, a title, a name or a path: only operations of the contract.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
}

func newMetrics(open func() float64) *metrics {
	x := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ctxdir_requests_total", Help: "Requests that ended, by operation and status.",
		}, []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ctxdir_request_seconds", Help: "How long requests took, without those that follow.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}, []string{"operation"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ctxdir_requests_running", Help: "Requests that run, followers included."}),
	}
	x.registry.MustRegister(
		x.requests, x.seconds, x.running,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ctxdir_stores_open", Help: "Stores of users that are open."}, open),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return x
}

// Metrics returns a handler that answers with the metrics, in the format of Prometheus.
func (x *Server) Metrics() http.Handler {
	return promhttp.HandlerFor(x.metrics.registry, promhttp.HandlerOpts{})
}

// note counts a request that ended, and writes its line of the audit.
func (x *Server) note(r *http.Request, g users.Grant, w *seenResponse, began time.Time) {
	x.metrics.running.Dec()
	took, operation, status := time.Since(began), r.Pattern, w.status
	if operation == "" {
		operation = "none"
	}
	if status == 0 {
		status = http.StatusOK
	}
	upgraded := r.Header.Get("Upgrade") != ""
	if upgraded && w.status == 0 {
		status = http.StatusSwitchingProtocols
	}
	x.metrics.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	if !upgraded {
		x.metrics.seconds.WithLabelValues(operation).Observe(took.Seconds())
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if x.o.Audit == AuditAll || x.o.Audit == AuditChanges && !reads && g.User != uuid.Nil {
		x.o.API.Log.Info("request", "user", g.User, "token", g.Token, "operation", operation, "status", status,
			"took", took.Round(time.Millisecond))
	}
}

// seenResponse notes the status.
type seenResponse struct {
	http.ResponseWriter
	status  int
	failed  func() error // why the store works no more; nil before it is known which one answers
	dropped bool         // another answer took the place of what is written
}

// WriteHeader sends the status, except that a store which works no more is unavailable: the next request opens it anew.
func (w *seenResponse) WriteHeader(status int) {
	if status == http.StatusInternalServerError && w.failed != nil && w.failed() != nil {
		w.failed = nil
		api.Unavailable(w)
		w.dropped = true
		return
	}
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenResponse) Write(b []byte) (int, error) {
	if w.dropped {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *seenResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
