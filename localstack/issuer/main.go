// Command issuer is an OIDC issuer for a deployment on the local AWS.
//
// It has one key, made at first use, and needs no process: what an authorizer
// asks of an issuer are two documents, which any web server can hold.
// localstack/deploy-local puts them into a bucket of the local AWS.
//
//	issuer documents FOLDER         writes the discovery document and the keys
//	issuer token [-tenant default] [-sub you] [-for 720h]
//
// Whoever has the key file can be anybody, so it is for loopback alone.
package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "issuer:", err)
		os.Exit(1)
	}
}

// asked is what the command line says.
type asked struct {
	key, issuer, audience string
	tenant, subject       string
	lasts                 time.Duration
}

func run(args []string, out io.Writer, now time.Time) error {
	var a asked
	flags := flag.NewFlagSet("issuer", flag.ContinueOnError)
	flags.StringVar(&a.key, "key", ".tools/aws-4566/issuer.json", "file of the private key")
	flags.StringVar(&a.issuer, "issuer", "http://127.0.0.1:4566/adjourn-issuer", "URL below which the documents are served")
	flags.StringVar(&a.audience, "audience", "adjourn", "audience of tokens")
	flags.StringVar(&a.tenant, "tenant", "default", "tenant of the token")
	flags.StringVar(&a.subject, "sub", "you", "who the token is of")
	flags.DurationVar(&a.lasts, "for", 30*24*time.Hour, "how long the token is good")
	if len(args) == 0 {
		return errors.New("say documents or token")
	}
	verb := args[0]
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	key, err := a.privateKey()
	if err != nil {
		return err
	}
	switch {
	case verb == "documents" && flags.NArg() == 1:
		return a.documents(key, flags.Arg(0))
	case verb == "token" && flags.NArg() == 0:
		token, err := a.token(key, now)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, token)
		return err
	}
	return fmt.Errorf("%q is not understood: say documents FOLDER, or token", args)
}

// privateKey reads the key, or makes one.
func (a asked) privateKey() (jose.JSONWebKey, error) {
	var key jose.JSONWebKey
	raw, err := os.ReadFile(a.key)
	if err == nil {
		if err := json.Unmarshal(raw, &key); err != nil || key.IsPublic() || !key.Valid() {
			return key, fmt.Errorf("%s holds no private key: remove it, and another is made", a.key)
		}
		return key, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return key, err
	}
	key = jose.JSONWebKey{Key: private, Algorithm: string(jose.RS256), Use: "sig"}
	thumb, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return key, err
	}
	key.KeyID = base64.RawURLEncoding.EncodeToString(thumb)
	return key, writeJSON(a.key, key, 0o600)
}

// documents writes what an authorizer reads.
func (a asked) documents(key jose.JSONWebKey, folder string) error {
	discovery := map[string]any{
		"issuer":                                a.issuer,
		"jwks_uri":                              a.issuer + "/jwks.json",
		"response_types_supported":              []string{"id_token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{key.Algorithm},
	}
	err := writeJSON(filepath.Join(folder, ".well-known", "openid-configuration"), discovery, 0o644)
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(folder, "jwks.json"), jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}}, 0o644)
}

// token signs what a caller claims to be.
func (a asked) token(key jose.JSONWebKey, now time.Time) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	claims := jwt.Claims{
		Issuer: a.issuer, Subject: a.subject, Audience: jwt.Audience{a.audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(a.lasts)),
	}
	return jwt.Signed(signer).Claims(claims).Claims(map[string]any{"tenant": a.tenant}).Serialize()
}

// writeJSON replaces a file in one step, so that of two who make a key one wins whole.
func writeJSON(path string, v any, mode fs.FileMode) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".issuer-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(raw)
	if err = errors.Join(err, temp.Chmod(mode), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
