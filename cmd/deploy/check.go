package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/agent"
)

// wrongError is an answer that is refused, in words for who gave it.
type wrongError struct{ words string }

func (w *wrongError) Error() string { return w.words }

func wrong(format string, args ...any) error { return &wrongError{fmt.Sprintf(format, args...)} }

const documentMost = 1 << 20 // bytes of a document of an issuer

// checkIssuer reads what API Gateway will read of the issuer: the discovery
// document, which must name the issuer letter by letter, and the keys.
func (d *deployment) checkIssuer(ctx context.Context, issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case issuer == "":
		return wrong("without an issuer nobody's token could be checked. It stands in the claim iss of a token, and in the settings of your provider")
	case err != nil || u.Host == "":
		return wrong("%q is no address: it begins with https://", issuer)
	case u.Scheme != "https" && (u.Scheme != "http" || !d.account.local()):
		return wrong("%q is not https://, and API Gateway asks no other", issuer)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return wrong("%q has a user, a query or a fragment, which no issuer has", issuer)
	}
	address := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := d.document(ctx, address, &document); err != nil {
		return err
	}
	switch {
	case document.Issuer == "":
		return wrong("%s names no issuer: it is no discovery document of OpenID Connect", address)
	case document.Issuer != issuer && strings.TrimSuffix(document.Issuer, "/") == strings.TrimSuffix(issuer, "/"):
		return wrong("the issuer calls itself %q, and the slash at the end counts: type it so", document.Issuer)
	case document.Issuer != issuer:
		return wrong("the issuer there calls itself %q, so its tokens would be refused: type that, if it is the one you mean", document.Issuer)
	case document.Keys == "":
		return wrong("%s names no jwks_uri, so its tokens could not be checked", address)
	}
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
		} `json:"keys"`
	}
	if err := d.document(ctx, document.Keys, &set); err != nil {
		return err
	}
	for _, key := range set.Keys {
		if key.Type == "RSA" {
			return nil
		}
	}
	return wrong("%s has no RSA key, and API Gateway checks no other signature: let the provider sign with RS256", document.Keys)
}

// document fetches a JSON document.
func (d *deployment) document(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return wrong("%q is no address", address)
	}
	resp, err := d.account.Client.Do(req)
	if err != nil {
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return wrong("%s cannot be read: %v. API Gateway reads it too, from the internet", address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, documentMost))
	switch {
	case err != nil:
		return wrong("%s cannot be read: %v", address, err)
	case resp.StatusCode != http.StatusOK:
		return wrong("%s answers %d, where the issuer's document should be", address, resp.StatusCode)
	case json.Unmarshal(raw, into) != nil:
		return wrong("%s is no JSON, so no issuer is there", address)
	}
	return nil
}

func (d *deployment) checkAudience(_ context.Context, audience string) error {
	names := strings.Split(audience, ",")
	switch {
	case audience == "":
		return wrong("without an audience a token that the issuer made for any other program would be let in. It stands in the claim aud, or client_id, of a token")
	case slices.Contains(names, "") || strings.ContainsAny(audience, " \t"):
		return wrong("%q: audiences have commas and no spaces between, and none is empty", audience)
	case len(names) > 50:
		return wrong("an authorizer has 50 audiences at most, and these are %d", len(names))
	}
	return nil
}

// standard claims say something else than a tenant, or are in no list of claims.
var standard = []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "client_id", "scope", "nonce", "azp", "auth_time", "token_use"}

func (d *deployment) checkClaim(_ context.Context, claim string) error {
	switch {
	case claim == "=":
		return wrong("no tenant stands behind the =")
	case strings.HasPrefix(claim, "="):
		return nil // a tenant of that name; the template says what names it takes
	case claim == "":
		return wrong("without a claim nobody would belong to a tenant")
	case strings.ContainsFunc(claim, func(r rune) bool { return r <= ' ' || r == '"' || r == ',' || r == 0x7f }):
		return wrong("%q is no name of one claim: it has no spaces, commas or quotes, as in tenant, custom:tenant, https://example.com/tenant", claim)
	case slices.Contains(standard, claim) && claim != "sub":
		return wrong("the claim %s says something else in every token: name the one your provider puts the tenant into; sub makes a tenant of each user", claim)
	}
	return nil
}

// checkModel asks the agents that are about to be deployed.
func (d *deployment) checkModel(_ context.Context, model string) error {
	if model == "" {
		return nil
	}
	registry, err := agents.Registry()
	if err != nil {
		return fmt.Errorf("agents/registry.go: %w", err)
	}
	env := func(key string) string {
		if key == agent.ModelVariable {
			return model
		}
		return ""
	}
	for _, name := range registry.Names() {
		var problem *agent.ModelError
		if _, err := registry.Rules(name, env); errors.As(err, &problem) {
			return wrong("%q: %s", model, strings.TrimSuffix(problem.Problem, "; it is named by "+agent.ModelVariable))
		}
	}
	return nil
}

// checkSecret reads the secret, as CloudFormation will with the same credentials,
// and looks for the key in it. The value goes nowhere.
func (d *deployment) checkSecret(ctx context.Context, id string) error {
	if id == "" {
		if strings.HasPrefix(d.answers["Model"], "openai:") && d.effective("OpenAIBaseUrl") == "" {
			return wrong("%s needs a key: make a secret (aws secretsmanager create-secret --name adjourn-models --secret-string '{\"OPENAI_API_KEY\": \"sk-…\"}'), and name it", d.answers["Model"])
		}
		return nil
	}
	if strings.HasPrefix(id, "sk-") && len(id) > 30 { // as a secret's name it would be asked for, and stand in CloudTrail
		return wrong("that looks like the key itself, which belongs into a secret: aws secretsmanager create-secret, as docs/deploy.md has it; then its name is the answer")
	}
	text, err := d.account.secret(ctx, id)
	switch code := refused(err); {
	case code == "ResourceNotFoundException":
		return wrong("there is no secret %q in %s of this account", id, d.account.Config.Region)
	case strings.HasPrefix(code, "AccessDenied"):
		return wrong("these credentials may not read the secret %q (secretsmanager:GetSecretValue), and CloudFormation reads it with them", id)
	case err != nil && code != "":
		return wrong("the secret %q cannot be read: %v", id, err)
	case err != nil:
		return err
	}
	var held map[string]any
	if json.Unmarshal([]byte(text), &held) != nil {
		return wrong("the secret %q does not hold a JSON object, such as {\"OPENAI_API_KEY\": \"sk-…\"}", id)
	}
	if key, _ := held["OPENAI_API_KEY"].(string); key == "" {
		return wrong("the secret %q has no OPENAI_API_KEY in its JSON", id)
	}
	return nil
}

func (d *deployment) checkTopic(ctx context.Context, arn string) error {
	if arn == "" {
		return nil
	}
	if parts := strings.Split(arn, ":"); len(parts) != 6 || parts[0] != "arn" || parts[2] != "sns" {
		return wrong("%q is no topic's ARN: arn:aws:sns:%s:ACCOUNT:NAME. aws sns create-topic --name adjourn-alarms prints one; aws sns subscribe brings its messages to a mailbox", arn, d.account.Config.Region)
	} else if parts[3] != d.account.Config.Region {
		return wrong("the topic is in %s, and alarms of %s reach only topics there", parts[3], d.account.Config.Region)
	}
	err := d.account.topic(ctx, arn)
	switch code := refused(err); {
	case strings.HasPrefix(code, "NotFound"):
		return wrong("there is no topic %q", arn)
	case strings.HasPrefix(code, "AuthorizationError"), strings.HasPrefix(code, "AccessDenied"):
		d.say("  Not checked: these credentials may not look at the topic (sns:GetTopicAttributes).\n")
		return nil
	case err != nil && code != "":
		return wrong("the topic %q cannot be looked at: %v", arn, err)
	}
	return err
}
