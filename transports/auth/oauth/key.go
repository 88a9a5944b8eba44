package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Key signs client assertions. It is immutable.
type Key struct {
	private crypto.Signer
	method  jwt.SigningMethod
	id      string
}

// ParseKey reads a private key in PEM (PKCS #8, PKCS #1 or SEC 1). algorithm is a name of JWS (ES256, RS256, PS256, EdDSA and so
// on); empty selects the usual one for the key. id becomes the header kid, if it is not empty. No error repeats the key.
func ParseKey(text []byte, algorithm, id string) (*Key, error) {
	fail := func(why string) (*Key, error) {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: "the client key " + why}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fail("is not in PEM")
	}
	var parsed any
	var err error
	// The label of the PEM block does not count: each form of a key is tried in turn.
	if parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		if parsed, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
			if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
				return fail("is no private key without a passphrase")
			}
		}
	}
	k := &Key{id: id}
	var usual string
	switch p := parsed.(type) {
	case *ecdsa.PrivateKey:
		k.private, usual = p, map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[p.Curve.Params().BitSize]
	case *rsa.PrivateKey:
		k.private, usual = p, "RS256"
	case ed25519.PrivateKey:
		k.private, usual = p, "EdDSA"
	default:
		return fail("is of a kind that is not known here")
	}
	if algorithm == "" {
		algorithm = usual
	}
	k.method = jwt.GetSigningMethod(algorithm)
	if k.method == nil {
		return fail("is to be used with an algorithm that is not known here")
	}
	// A key of the wrong type or curve for the algorithm shows here, and not at the first sign-in.
	if _, err := k.method.Sign("probe", k.private); err != nil {
		return fail("does not fit the algorithm " + messages.Line(algorithm, 20))
	}
	return k, nil
}

// signAssertion proves the client's identity (RFC 7523, 2.2 and 3) for 5 minutes, because clocks may differ. The audience is the
// issuer: an assertion for a token endpoint's URL could be used at another server that claims that endpoint.
func (k *Key) signAssertion(client, issuer string, now time.Time) (string, error) {
	// The random jti lets a server accept each assertion only once.
	t := jwt.NewWithClaims(k.method, jwt.MapClaims{
		"iss": client, "sub": client, "aud": issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	})
	if k.id != "" {
		t.Header["kid"] = k.id
	}
	signed, err := t.SignedString(k.private)
	if err != nil {
		return "", &transports.Error{Class: messages.ClassConfig, Text: "the client key cannot sign"}
	}
	return signed, nil
}
