package lambdafn

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

// admission says which requests a function answers: those of its API, by its own
// routes. It is the one place where that is asked, before anything else is.
type admission struct {
	api    string
	routes map[string]bool
}

func newAdmission(api string, function httpapi.Function) *admission {
	a := &admission{api: api, routes: map[string]bool{}}
	for _, r := range httpapi.Routes() {
		if r.Function == function {
			a.routes[r.Method+" "+r.Path] = true
		}
	}
	return a
}

// check returns why a request is not answered. Another API, or a route of this one
// that was made by hand, may ask its callers for less.
func (a *admission) check(event *httpEvent) error {
	if got := event.RequestContext.APIID; got != a.api {
		return fmt.Errorf("it came by the API %.40q; ADJOURN_API_ID names another", got)
	}
	if got := event.RequestContext.RouteKey; !a.routes[got] {
		return fmt.Errorf("it came by the route %.100q, which is none of this function's", got)
	}
	return nil
}

// authenticate says who calls, by what the gateway's authorizer has verified. It
// looks at nothing the client sent: no header, and not the token, which the
// gateway has already judged. One kind of authorizer is expected, JWT or, where
// IAMTenant is set, IAM; what any other one says counts for nothing.
func (c Config) authenticate(r *http.Request) (httpapi.Caller, error) {
	event, ok := r.Context().Value(proxiedEvent{}).(*httpEvent)
	if !ok {
		return httpapi.Caller{}, fmt.Errorf("%w: the request did not come through the gateway", httpapi.ErrUnauthenticated)
	}
	from := event.RequestContext.HTTP.SourceIP
	if from == "" {
		from, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	verified := event.RequestContext.Authorizer
	if verified == nil {
		verified = new(authorizer)
	}
	var tenant, who string
	var roles []string
	var err error
	switch {
	case verified.Unknown:
		err = fmt.Errorf("%w: an authorizer let this request in that is neither JWT nor IAM", httpapi.ErrUnauthenticated)
	case verified.JWT != nil && c.IAMTenant != "":
		err = fmt.Errorf("%w: callers sign with IAM here, a token counts for nothing", httpapi.ErrUnauthenticated)
	case verified.JWT != nil:
		tenant, who, err = c.byToken(verified.JWT.Claims)
		if c.RolesClaim != "" {
			roles = verified.JWT.Claims[c.RolesClaim].roles()
		}
	case verified.IAM != nil:
		var called string
		if tenant, who, called, err = c.byIAM(*verified.IAM); called != "" {
			from += " session " + called // for people who look; nothing goes by it
		}
	case c.AllowUnauthenticated:
		tenant, who = session.DefaultTenant, "anonymous"
	default:
		err = fmt.Errorf("%w: no authorizer has let this request in", httpapi.ErrUnauthenticated)
	}
	if err != nil {
		return httpapi.Caller{}, err
	}
	unverified := verified.JWT == nil && verified.IAM == nil
	return httpapi.Caller{Tenant: tenant, Who: who, From: from, Roles: roles, Unverified: unverified}, nil
}

// roles returns the roles that a claim says: a list, or text with spaces or commas between. The
// gateway writes a list as [one two]. One that says anything else gives none.
func (c claim) roles() []string {
	list := c.list
	if text := strings.TrimSpace(c.text); strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && json.Unmarshal([]byte(text), &list) != nil {
		c.text, list = text[1:len(text)-1], nil
	}
	roles, err := httpapi.CheckRoles(list)
	if list == nil {
		roles, err = httpapi.ParseRoles(c.text)
	}
	if err != nil {
		return nil
	}
	return roles
}

// byToken returns the caller a token is of.
func (c Config) byToken(claims map[string]claim) (tenant, who string, err error) {
	if tenant = c.FixedTenant; tenant == "" {
		if tenant, err = c.claimed(claims, c.TenantClaim); err != nil {
			return "", "", err
		}
	}
	who, err = subject(claims)
	return tenant, who, err
}

// byIAM returns the caller that IAM let in, and what he calls his session.
func (c Config) byIAM(verified iamAuthorizer) (tenant, who, called string, err error) {
	switch {
	case verified.UserARN == "":
		return "", "", "", fmt.Errorf("%w: IAM does not say who this is", httpapi.ErrUnauthenticated)
	case c.IAMTenant == "":
		return "", "", "", fmt.Errorf("%w: callers by IAM have no tenant here; ADJOURN_IAM_TENANT names it", httpapi.ErrForbidden)
	case verified.Cognito.IdentityID != "" || verified.Cognito.PoolID != "":
		return "", "", "", fmt.Errorf("%w: all users of a Cognito identity pool have one ARN, so nobody could tell who it was", httpapi.ErrForbidden)
	}
	who, called, err = principal(verified.UserARN)
	return c.IAMTenant, who, called, err
}

// principal returns who an ARN of IAM names, by what callers cannot choose: a user
// or the account's root by the whole of it, an assumed role without the session's
// name. That name is the word of whoever assumes the role (sts:RoleSessionName), so it
// is returned apart, and names nobody. All of a federated user's is such a name.
func principal(arn string) (who, called string, err error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) == 6 && parts[0] == "arn" && parts[4] != "" {
		switch kind, rest, _ := strings.Cut(parts[5], "/"); parts[2] + " " + kind {
		case "iam user", "iam root":
			return arn, "", nil
		case "sts assumed-role":
			if role, name, ok := strings.Cut(rest, "/"); ok && role != "" && name != "" {
				return strings.TrimSuffix(arn, "/"+name), name, nil
			}
		}
	}
	return "", "", fmt.Errorf("%w: IAM says %.100q, which is neither a user nor a role: a name that its bearer chose names nobody", httpapi.ErrForbidden, arn)
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
