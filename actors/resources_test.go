package actors_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/repa-app/repa/actors"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

// fetch does one HTTP exchange with the token; pairs are names and values of headers.
func (w *world) fetch(method, path, body string, pairs ...string) (int, string, http.Header) {
	w.t.Helper()
	return w.send(method, path, strings.NewReader(body), pairs...)
}

func (w *world) send(method, path string, body io.Reader, pairs ...string) (int, string, http.Header) {
	w.t.Helper()
	request, err := http.NewRequest(method, w.server.URL()+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testToken)
	for i := 0; i < len(pairs); i += 2 {
		request.Header.Set(pairs[i], pairs[i+1])
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// TestUploadsStay uploads, reads a part and opens the space again: the bytes are still there, leased, whatever was collected.
func TestUploadsStay(t *testing.T) {
	w := start(t, func(o *actors.Options) { o.Store.Grace = -1 })
	c := w.dial()
	s := call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: w.directory()})
	large := strings.Repeat("0123456789abcdef", 1<<17)
	var made protocol.ResourcePreparation
	for _, body := range []string{"", "bytes", large} {
		status, text, _ := w.fetch("POST", "/spaces/"+string(s.ID)+"/resources", body, "X-Repa-Host-Key", c.Server().HostKey, "Content-Type", "text/plain")
		var err error
		if made, err = protocol.Decode[protocol.ResourcePreparation]([]byte(text)); status != http.StatusOK || err != nil {
			t.Fatalf("%d %s %v", status, text, err)
		}
		if want := cas.Sum([]byte(body)).String(); string(made.Resource.ID) != want || made.Resource.MediaType != "text/plain" || made.Resource.SpaceID != s.ID {
			t.Errorf("%+v, want resource %s", made, want)
		}
		call(w, c, protocol.ResourceCollect, protocol.SpaceParams{SpaceID: s.ID})
		status, text, header := w.fetch("GET", "/spaces/"+string(s.ID)+"/resources/"+string(made.Resource.ID), "")
		if status != http.StatusOK || text != body || header.Get("ETag") != `"`+string(made.Resource.ID)+`"` {
			t.Errorf("%d, %d bytes of %d, %v", status, len(text), len(body), header)
		}
	}
	status, part, _ := w.fetch("GET", "/spaces/"+string(s.ID)+"/resources/"+string(made.Resource.ID), "", "Range", "bytes=1500000-1700000")
	if status != http.StatusPartialContent || part != large[1_500_000:1_700_001] {
		t.Errorf("range: %d, %d bytes", status, len(part))
	}
	w.stop()
	store, err := cas.Open(t.Context(), filepath.Join(s.Path, ".repa", "cas"), cas.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if owners := store.Owners(cas.Sum([]byte(large))); len(owners) != 1 || owners[0] != (cas.Owner{Kind: cas.OwnerLease, ID: string(made.ID)}) {
		t.Errorf("held by %v, want lease %s", owners, made.ID)
	}
}

func TestWhoMayUploadAndWhatIsNotThere(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s := call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: w.directory()})
	leaving := w.dial()
	key := leaving.Server().HostKey
	call(w, leaving, protocol.ClientDetach, protocol.Empty{})
	zero := strings.Repeat("0", 64)
	for _, x := range []struct {
		name, method, path, key string
		status                  int
		code                    string
	}{
		{"no such host", "POST", "/spaces/" + string(s.ID) + "/resources", zero, 401, ""},
		{"detached host", "POST", "/spaces/" + string(s.ID) + "/resources", key, 401, ""},
		{"space that is not open", "POST", "/spaces/not-open/resources", c.Server().HostKey, 400, "not_found"},
		{"right", "POST", "/spaces/" + string(s.ID) + "/resources", c.Server().HostKey, 200, ""},
		{"resource of a space that is not open", "GET", "/spaces/not-open/resources/" + zero, "", 400, "not_found"},
		{"no such resource", "GET", "/spaces/" + string(s.ID) + "/resources/" + zero, "", 400, "revision_unavailable"},
	} {
		status, text, _ := w.fetch(x.method, x.path, "bytes", "X-Repa-Host-Key", x.key)
		if status != x.status || x.code != "" && !strings.HasPrefix(text, `{"code":"`+x.code+`",`) {
			t.Errorf("%s: %d %s", x.name, status, text)
		}
	}
}

// TestUploadOfAHostThatDetached wants nothing to be leased for a host that left during its upload, though somebody came with its key since.
func TestUploadOfAHostThatDetached(t *testing.T) {
	w := start(t, nil)
	c := w.dial()
	s := call(w, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: w.directory()})
	key := c.Server().HostKey
	body, feed := io.Pipe()
	status, text := make(chan int, 1), make(chan string, 1)
	go func() {
		defer close(status)
		defer close(text)
		code, answer, _ := w.send("POST", "/spaces/"+string(s.ID)+"/resources", body, "X-Repa-Host-Key", key)
		status <- code
		text <- answer
	}()
	// The backend has looked for the host when the first megabytes, which fit no buffer, are through.
	if _, err := io.WriteString(feed, strings.Repeat("0123456789abcdef", 1<<20)); err != nil {
		t.Fatal(err)
	}
	call(w, c, protocol.ClientDetach, protocol.Empty{})
	again, err := client.Dial(context.Background(), client.Options{URL: w.server.URL(), Token: testToken, HostKey: protocol.HostKey(key)})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Drop()
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if code, answer := <-status, <-text; code != http.StatusConflict || !strings.HasPrefix(answer, `{"code":"closed",`) {
		t.Errorf("%d %s", code, answer)
	}
}
