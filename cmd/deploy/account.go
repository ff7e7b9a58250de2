package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
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
	err = a.Form(ctx, "sts", url.Values{"Action": {"GetCallerIdentity"}, "Version": {"2011-06-15"}}, &found)
	return found.Account, found.Arn, err
}

// findStack returns a stack, nil if there is none or nothing was ever deployed as it.
func (a *account) findStack(ctx context.Context, name string) (*awscall.Stack, error) {
	found, err := a.Stack(ctx, name)
	if found != nil && found.Status == "REVIEW_IN_PROGRESS" {
		found = nil
	}
	return found, err
}

// secret returns what a secret holds.
func (a *account) secret(ctx context.Context, id string) (string, error) {
	var found struct{ SecretString string }
	err := a.JSON(ctx, "secretsmanager", "secretsmanager.GetSecretValue", "1.1", map[string]string{"SecretId": id}, &found)
	return found.SecretString, err
}

// topic says whether a topic can be asked for its attributes.
func (a *account) topic(ctx context.Context, arn string) error {
	return a.Form(ctx, "sns", url.Values{"Action": {"GetTopicAttributes"}, "Version": {"2010-03-31"}, "TopicArn": {arn}}, nil)
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
