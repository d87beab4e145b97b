package openai_test

import (
	"net/http"
	"net/url"

	"github.com/repa-app/repa/testkit/modelserver"
)

// clientTo sends every request to the server, whatever host it names.
func clientTo(s *modelserver.Server) *http.Client {
	root, err := url.Parse(s.URL())
	if err != nil {
		panic(err)
	}
	return &http.Client{Transport: rerouted{root, s.Client().Transport}}
}

type rerouted struct {
	root *url.URL
	next http.RoundTripper
}

func (r rerouted) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = r.root.Scheme, r.root.Host, r.root.Host
	return r.next.RoundTrip(req)
}
