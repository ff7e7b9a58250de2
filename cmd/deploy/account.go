package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/adjourn/adjourn/internal/awscall"
)

// account is the AWS account that is deployed into, with the caller's credentials.
// It makes five requests of five services, whose SDKs would be most of this program.
type account struct{ awscall.Caller }

var isRegion = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`)

// openAccount finds credentials, and the region unless one is named.
func openAccount(ctx context.Context, region string) (*account, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	if region == "" {
		region = cfg.Region
	}
	// It is part of the hosts that requests go to, with the session's token: samconfig.toml
	// may have come with somebody else's folder.
	if region != "" && !isRegion.MatchString(region) {
		return nil, wrong("%q is no region: eu-west-1 is one", region)
	}
	cfg.Region = region
	return &account{awscall.Caller{Config: cfg, Client: &http.Client{Timeout: 30 * time.Second}, Now: time.Now, Most: 4 << 20}}, nil
}

// local tells whether the account is an emulator on this machine.
func (a *account) local() bool {
	if a.Config.BaseEndpoint == nil {
		return false
	}
	u, err := url.Parse(*a.Config.BaseEndpoint)
	return err == nil && (u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost")
}

// refused returns the code of a refusal in err, "" if there is none.
func refused(err error) string {
	var r *awscall.RefusedError
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// identity returns the account's number and who asks.
func (a *account) identity(ctx context.Context) (number, arn string, err error) {
	var found struct {
		Account string `xml:"GetCallerIdentityResult>Account"`
		Arn     string `xml:"GetCallerIdentityResult>Arn"`
	}
	err = a.query(ctx, "sts", url.Values{"Action": {"GetCallerIdentity"}, "Version": {"2011-06-15"}}, &found)
	return found.Account, found.Arn, err
}

// stack is what CloudFormation says of one.
type stack struct {
	status              string
	parameters, outputs map[string]string
}

// findStack returns a stack, nil if there is none or nothing was ever deployed as it.
func (a *account) findStack(ctx context.Context, name string) (*stack, error) {
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
	form := url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {name}}
	err := a.query(ctx, "cloudformation", form, &found)
	var r *awscall.RefusedError
	if errors.As(err, &r) && strings.Contains(r.Message, "does not exist") {
		return nil, nil //nolint:nilnil // a stack that is not there is no error
	}
	if err != nil {
		return nil, err
	}
	if len(found.Stacks) != 1 || found.Stacks[0].StackStatus == "REVIEW_IN_PROGRESS" {
		return nil, nil //nolint:nilnil // as above
	}
	s := &stack{status: found.Stacks[0].StackStatus, parameters: map[string]string{}, outputs: map[string]string{}}
	for _, p := range found.Stacks[0].Parameters {
		s.parameters[p.ParameterKey] = p.ParameterValue
	}
	for _, o := range found.Stacks[0].Outputs {
		s.outputs[o.OutputKey] = o.OutputValue
	}
	return s, nil
}

// secret returns what a secret holds.
func (a *account) secret(ctx context.Context, id string) (string, error) {
	body, err := json.Marshal(map[string]string{"SecretId": id})
	if err != nil {
		return "", err
	}
	raw, err := a.Do(ctx, awscall.Request{
		Service: "secretsmanager", Method: http.MethodPost, Target: "secretsmanager.GetSecretValue",
		ContentType: "application/x-amz-json-1.1", Body: body,
	})
	if err != nil {
		return "", err
	}
	var found struct{ SecretString string }
	err = json.Unmarshal(raw, &found)
	return found.SecretString, err
}

// topic says whether a topic can be asked for its attributes.
func (a *account) topic(ctx context.Context, arn string) error {
	return a.query(ctx, "sns", url.Values{"Action": {"GetTopicAttributes"}, "Version": {"2010-03-31"}, "TopicArn": {arn}}, nil)
}

// concurrency returns how many invocations may run at once in the account's
// region, and how many of them no function has reserved.
func (a *account) concurrency(ctx context.Context) (all, unreserved int, err error) {
	raw, err := a.Do(ctx, awscall.Request{Service: "lambda", Method: http.MethodGet, Path: "/2016-08-19/account-settings/"})
	if err != nil {
		return 0, 0, err
	}
	var found struct {
		AccountLimit struct{ ConcurrentExecutions, UnreservedConcurrentExecutions int }
	}
	err = json.Unmarshal(raw, &found)
	return found.AccountLimit.ConcurrentExecutions, found.AccountLimit.UnreservedConcurrentExecutions, err
}

// query makes a request of a service that takes forms and answers in XML.
func (a *account) query(ctx context.Context, service string, form url.Values, out any) error {
	raw, err := a.Do(ctx, awscall.Request{
		Service: service, Method: http.MethodPost, ContentType: "application/x-www-form-urlencoded", Body: []byte(form.Encode()),
	})
	if err != nil || out == nil {
		return err
	}
	return xml.Unmarshal(raw, out)
}
