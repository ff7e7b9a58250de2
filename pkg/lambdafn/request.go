package lambdafn

import (
	"encoding/json"
	"errors"
	"maps"

	"github.com/aws/aws-lambda-go/events"
)

// httpEvent is a request of API Gateway's HTTP API, payload format 2.0. The
// gateway writes it; what a client has a say in are the headers, cookies, path,
// query and body, never the request context. Whoever may invoke the function by
// other ways (lambda:InvokeFunction) can write all of it, and be anybody: that
// permission is worth as much as all tenants together (docs/security.md).
type httpEvent struct {
	Version               string            `json:"version"`
	RawPath               string            `json:"rawPath"`
	RawQueryString        string            `json:"rawQueryString"`
	QueryStringParameters map[string]string `json:"queryStringParameters"`
	Cookies               []string          `json:"cookies"`
	Headers               map[string]string `json:"headers"`
	Body                  string            `json:"body"`
	IsBase64Encoded       bool              `json:"isBase64Encoded"`
	RequestContext        httpContext       `json:"requestContext"`
}

type httpContext struct {
	APIID      string      `json:"apiId"`
	RouteKey   string      `json:"routeKey"`
	Stage      string      `json:"stage"`
	RequestID  string      `json:"requestId"`
	DomainName string      `json:"domainName"`
	Authorizer *authorizer `json:"authorizer"`
	HTTP       events.APIGatewayV2HTTPRequestContextHTTPDescription
}

// authorizer is what the gateway has verified about the caller. At most one of its
// kinds is set: a route has one.
type authorizer struct {
	JWT *jwtAuthorizer
	IAM *iamAuthorizer
	// Unknown says that something else has let the request in, or more than one.
	Unknown bool
}

type jwtAuthorizer struct {
	Claims map[string]claim `json:"claims"`
}

type iamAuthorizer struct {
	UserARN string `json:"userArn"`
	// Cognito is set where the credentials are those of a Cognito identity pool.
	Cognito struct {
		IdentityID string `json:"identityId"`
		PoolID     string `json:"identityPoolId"`
	} `json:"cognitoIdentity"`
}

// UnmarshalJSON takes the kinds by their exact names, so that nothing that only
// looks like one is taken for it.
func (a *authorizer) UnmarshalJSON(raw []byte) error {
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return err
	}
	maps.DeleteFunc(kinds, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	*a = authorizer{Unknown: len(kinds) > 1}
	for kind, v := range kinds {
		switch kind {
		case "jwt":
			a.JWT = new(jwtAuthorizer)
			if err := json.Unmarshal(v, a.JWT); err != nil {
				return err
			}
		case "iam":
			a.IAM = new(iamAuthorizer)
			if err := json.Unmarshal(v, a.IAM); err != nil {
				return err
			}
		default:
			a.Unknown = true
		}
	}
	return nil
}

// claim is a claim of a token. The gateway gives text alone; emulators hand
// numbers and lists through.
type claim struct {
	text string
	// odd says that it is neither text nor a number, so it names nobody.
	odd bool
	// list of texts that it is.
	list []string
}

// UnmarshalJSON takes text as it is and a number as its digits.
func (c *claim) UnmarshalJSON(raw []byte) error {
	var number json.Number
	switch {
	case json.Unmarshal(raw, &c.text) == nil:
	case json.Unmarshal(raw, &number) == nil:
		c.text = number.String()
	default:
		c.odd = true
		if json.Unmarshal(raw, &c.list) != nil {
			c.list = nil
		}
	}
	return nil
}

// errNotHTTP says that an event is no HTTP request.
var errNotHTTP = errors.New("not an HTTP request in API Gateway's payload format 2.0")

// errBadHTTP says that an event is one, but not as the gateway writes it.
var errBadHTTP = errors.New("the HTTP request cannot be read")

// parseHTTP reads an HTTP request, or returns errNotHTTP or errBadHTTP.
func parseHTTP(raw []byte) (httpEvent, error) {
	var event httpEvent
	misread := json.Unmarshal(raw, &event)
	version, method := event.Version, event.RequestContext.HTTP.Method
	if misread != nil {
		// What makes it a request may stand behind what cannot be read. Keys that differ
		// in case alone are one to the decoder: a probe that fails says nothing about the
		// rest, so only a method makes it a request.
		var probe struct {
			Version        string `json:"version"`
			RequestContext struct {
				HTTP struct {
					Method string `json:"method"`
				} `json:"http"`
			} `json:"requestContext"`
		}
		if err := json.Unmarshal(raw, &probe); err != nil {
			return httpEvent{}, errNotHTTP
		}
		version, method = probe.Version, probe.RequestContext.HTTP.Method
	}
	switch {
	case method == "" || version != "2.0":
		return httpEvent{}, errNotHTTP
	case misread != nil:
		return event, errBadHTTP
	}
	return event, nil
}

// ofHTTP reports whether an event is a request as a gateway, a load balancer or a
// function's URL writes it, in whichever version.
func ofHTTP(raw []byte) bool {
	var probe struct {
		HTTPMethod     any `json:"httpMethod"`
		RequestContext *struct {
			HTTP any `json:"http"`
		} `json:"requestContext"`
	}
	// What cannot be read whole may have set what was asked for all the same.
	_ = json.Unmarshal(raw, &probe)
	return probe.RequestContext != nil && (probe.HTTPMethod != nil || probe.RequestContext.HTTP != nil)
}
