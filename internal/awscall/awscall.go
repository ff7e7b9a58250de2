// Package awscall makes single signed requests of AWS, for programs that need few of many services.
package awscall

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Caller is who asks. It is safe for concurrent use.
type Caller struct {
	// Config has the region, the credentials and, for an emulator, the endpoint.
	Config aws.Config
	// Client makes the requests; nil means [http.DefaultClient].
	Client *http.Client
	// Now is the clock that requests are signed by.
	Now func() time.Time
	// Most is how many bytes of an answer are read.
	Most int64
}

// Request is one request of a service. Method is POST where it is empty; Target is
// the header of services that speak JSON.
type Request struct {
	Service, Method, Path, Target, ContentType string
	Body                                       []byte
}

// RefusedError is an answer that is not 2xx, or the error of a function that was invoked.
type RefusedError struct {
	Service string
	Status  int
	// Code such as AccessDenied; Message is what AWS says of it.
	Code, Message string
}

func (r *RefusedError) Error() string {
	return fmt.Sprintf("%s answers %d %s: %.500q", r.Service, r.Status, r.Code, r.Message)
}

// Do makes a request and returns its answer. An error is a [*RefusedError], or says that
// there was no answer.
func (c Caller) Do(ctx context.Context, r Request) ([]byte, error) {
	endpoint := "https://" + r.Service + "." + c.Config.Region + ".amazonaws.com"
	if strings.HasPrefix(c.Config.Region, "cn-") {
		endpoint += ".cn"
	}
	if c.Config.BaseEndpoint != nil {
		endpoint = strings.TrimSuffix(*c.Config.BaseEndpoint, "/")
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), endpoint+"/"+strings.TrimPrefix(r.Path, "/"), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	if r.Target != "" {
		req.Header.Set("X-Amz-Target", r.Target)
	}
	credentials, err := c.Config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(r.Body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), r.Service, c.Config.Region, c.Now()); err != nil {
		return nil, err
	}
	resp, err := cmp.Or(c.Client, http.DefaultClient).Do(req)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, c.Most))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	failure := resp.Header.Get("X-Amz-Function-Error")
	switch {
	case resp.StatusCode/100 != 2:
		return nil, explain(r.Service, resp.StatusCode, raw)
	case failure != "":
		return nil, &RefusedError{Service: r.Service, Status: resp.StatusCode, Code: failure, Message: string(raw)}
	}
	return raw, nil
}

// Form makes a request of a service that takes forms and answers in XML, which is
// read into out; out may be nil.
func (c Caller) Form(ctx context.Context, service string, form url.Values, out any) error {
	raw, err := c.Do(ctx, Request{Service: service, ContentType: "application/x-www-form-urlencoded", Body: []byte(form.Encode())})
	if err != nil || out == nil {
		return err
	}
	return xml.Unmarshal(raw, out)
}

// JSON makes a request of a service that speaks JSON, of this version of its protocol,
// such as 1.1.
func (c Caller) JSON(ctx context.Context, service, target, version string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	raw, err := c.Do(ctx, Request{Service: service, Target: target, ContentType: "application/x-amz-json-" + version, Body: body})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// Stack is what CloudFormation says of a stack.
type Stack struct {
	Status              string
	Parameters, Outputs map[string]string
}

// Stack returns a stack by its name, nil if there is none.
func (c Caller) Stack(ctx context.Context, name string) (*Stack, error) {
	type pair struct {
		ParameterKey, ParameterValue, OutputKey, OutputValue string
	}
	var found struct {
		Stacks []struct {
			StackStatus string
			Parameters  []pair `xml:"Parameters>member"`
			Outputs     []pair `xml:"Outputs>member"`
		} `xml:"DescribeStacksResult>Stacks>member"`
	}
	err := c.Form(ctx, "cloudformation", url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {name}}, &found)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.Message, "does not exist"):
		return nil, nil //nolint:nilnil // a stack that is not there is no error
	case err != nil:
		return nil, err
	case len(found.Stacks) != 1:
		return nil, fmt.Errorf("stack %s: %d found", name, len(found.Stacks))
	}
	s := &Stack{Status: found.Stacks[0].StackStatus, Parameters: map[string]string{}, Outputs: map[string]string{}}
	for _, p := range found.Stacks[0].Parameters {
		s.Parameters[p.ParameterKey] = p.ParameterValue
	}
	for _, o := range found.Stacks[0].Outputs {
		s.Outputs[o.OutputKey] = o.OutputValue
	}
	return s, nil
}

// explain reads a refusal, which is JSON or XML by service.
func explain(service string, status int, raw []byte) *RefusedError {
	r := &RefusedError{Service: service, Status: status, Message: string(raw)}
	var inJSON struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	var inXML struct {
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	switch {
	case json.Unmarshal(raw, &inJSON) == nil:
		_, r.Code, _ = strings.Cut("#"+inJSON.Type, "#")
		if _, after, found := strings.Cut(r.Code, "#"); found {
			r.Code = after
		}
		r.Message = inJSON.Message
	case xml.Unmarshal(raw, &inXML) == nil:
		r.Code, r.Message = inXML.Code, inXML.Message
	}
	return r
}
