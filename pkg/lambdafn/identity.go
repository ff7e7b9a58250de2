package lambdafn

import (
	"fmt"
	"net"
	"net/http"

	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

// authenticate says who calls, by what the gateway's authorizer has verified. It
// looks at nothing the client sent: no header, and not the token, which the
// gateway has already judged.
func (c Config) authenticate(r *http.Request) (httpapi.Caller, error) {
	carried, ok := r.Context().Value(carriedKey{}).(carried)
	if !ok {
		return httpapi.Caller{}, fmt.Errorf("%w: the request did not come through the gateway", httpapi.ErrUnauthenticated)
	}
	from := carried.event.RequestContext.HTTP.SourceIP
	if from == "" {
		from, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	verified := carried.event.RequestContext.Authorizer
	switch {
	case verified != nil && verified.JWT != nil:
		tenant, err := c.claimed(verified.JWT.Claims, c.TenantClaim)
		if err != nil {
			return httpapi.Caller{}, err
		}
		who, err := subject(verified.JWT.Claims)
		if err != nil {
			return httpapi.Caller{}, err
		}
		return httpapi.Caller{Tenant: tenant, Who: who, From: from}, nil
	case verified != nil && verified.IAM != nil && verified.IAM.UserARN != "":
		if c.IAMTenant == "" {
			return httpapi.Caller{}, fmt.Errorf("%w: callers by IAM have no tenant here; ADJOURN_IAM_TENANT names it", httpapi.ErrForbidden)
		}
		return httpapi.Caller{Tenant: c.IAMTenant, Who: verified.IAM.UserARN, From: from}, nil
	case c.AllowUnauthenticated:
		return httpapi.Caller{Tenant: session.DefaultTenant, Who: "anonymous", From: from}, nil
	}
	return httpapi.Caller{}, fmt.Errorf("%w: no authorizer has let this request in", httpapi.ErrUnauthenticated)
}

// subject returns who a token is of. Nothing stands in for sub, which alone is
// unique and stays for ever: an email, a user name or a nickname is what its user
// wrote, and a client's id is that of everybody who uses the client. A machine has
// a subject, too: its issuer writes the client's there.
func subject(claims map[string]claim) (string, error) {
	sub := claims["sub"]
	switch {
	case sub.odd:
		return "", fmt.Errorf("%w: the claim sub of the token is no text, so nobody could tell who it was", httpapi.ErrForbidden)
	case sub.text == "":
		return "", fmt.Errorf("%w: the token has no claim sub, so nobody could tell who it was; no other claim stands in for it: let the issuer write sub into its access tokens", httpapi.ErrForbidden)
	}
	return sub.text, nil
}

// claimed returns the tenant a token names. There is no default: whoever has no
// tenant may see nobody's sessions.
func (c Config) claimed(claims map[string]claim, name string) (string, error) {
	tenant := claims[name].text
	if tenant == "" {
		return "", fmt.Errorf("%w: the token has no claim %q, which names the tenant", httpapi.ErrForbidden, name)
	}
	if err := (session.Key{Tenant: tenant, ID: "x"}).Validate(); err != nil {
		return "", fmt.Errorf("%w: the claim %q is no tenant: use 1 to 128 letters, digits, _ or -", httpapi.ErrForbidden, name)
	}
	return tenant, nil
}
