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

// strictTransport checks answers before the decoders of other libraries read them (golang.org/x/oauth2 for tokens, go-sdk's oauthex
// for registrations). These take the last of several equal names, and names in another case: an answer that could be read in two
// ways, or that is too long, does not reach them.
type strictTransport struct{ http.RoundTripper }

// errAmbiguous means that an answer has a name twice, and that two programs could read it differently.
var errAmbiguous = errors.New("the answer has a name twice")

// errTooLong means that an answer is longer than fetchSize.
var errTooLong = errors.New("the answer is longer than 1 MiB")

// RoundTrip implements http.RoundTripper. It reads the whole body, so that a failed exchange shows as an error of the exchange.
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
	case strings.HasPrefix(kind, "text/") || kind == "application/x-www-form-urlencoded": // no JSON, so that the library reads no names
	case errors.As(rawjson.CheckNames(body), &doubled):
		return nil, errAmbiguous
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
