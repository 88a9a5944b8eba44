package oauth

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// strictTransport stands before decoders that are not ours (golang.org/x/oauth2 for tokens, go-sdk's oauthex for registrations),
// which take the last of several equal names and names of another case: an answer that could be read in two ways, or that
// is too long, does not reach them.
type strictTransport struct{ http.RoundTripper }

// errAmbiguous says that an answer has names twice.
var errAmbiguous = errors.New("the answer has a name twice")

// errTooLong says that an answer is longer than fetchSize.
var errTooLong = errors.New("the answer is longer than 1 MiB")

// RoundTrip implements http.RoundTripper.
func (s strictTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, fetchSize+1))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var doubled *rawjson.NameError
	switch {
	case len(body) > fetchSize:
		return nil, errTooLong
	case strings.HasPrefix(kind, "text/") || kind == "application/x-www-form-urlencoded": // a page, or a form
	case errors.As(rawjson.CheckNames(body), &doubled):
		return nil, errAmbiguous
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
