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
		for _, name := range []string{"sub", "email"} {
			who := verified.JWT.Claims[name]
			if who.odd {
				return httpapi.Caller{}, fmt.Errorf("%w: the claim %s is no text", httpapi.ErrForbidden, name)
			}
			if who.text != "" {
				return httpapi.Caller{Tenant: tenant, Who: who.text, From: from}, nil
			}
		}
		return httpapi.Caller{}, fmt.Errorf("%w: the token says neither sub nor email, so nobody could tell who it was", httpapi.ErrForbidden)
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
