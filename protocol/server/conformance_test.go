package server_test

import (
	"path/filepath"
	"testing"

	"github.com/repa-app/repa/protocol/internal/fake"
	"github.com/repa-app/repa/testkit/frames"
)

// harness is a fake backend for the files that need no work to be done.
type harness struct {
	url string
	dir string
}

func (h harness) URL() string                  { return h.url }
func (h harness) Token() string                { return fake.Token }
func (h harness) NewDirectory() string         { return h.dir }
func (h harness) Connection() (string, string) { return "connection", "model" }
func (h harness) Model([]frames.Turn)          {}
func (h harness) Release(string)               {}

func startFake(t testing.TB, _ frames.Server) frames.Harness {
	return harness{url: fake.New("server-1").Serve(t).URL(), dir: filepath.Join(t.TempDir(), "space")}
}

func TestConformance(t *testing.T) {
	for _, name := range []string{
		"01-handshake", "02-handshake-bad-token", "03-handshake-bad-version", "04-before-initialize", "05-host-key",
		"06-invalid-requests", "08-unknown-method-and-notification", "25-subscription-resume",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frames.Play(t, "../testdata/protocol-v1/frames/"+name+".json", "../testdata/protocol-v1/methods.json", startFake)
		})
	}
}
