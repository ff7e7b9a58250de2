package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/awscall"
)

// answering is an AWS and an issuer that answer what a test says, by what the path,
// the form or the target of a request contains.
func answering(t *testing.T, says map[string]string) (*deployment, string, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked := r.URL.Path + " " + string(body) + " " + r.Header.Get("X-Amz-Target")
		for what, answer := range says {
			if strings.Contains(asked, what) {
				if refusal, found := strings.CutPrefix(answer, "400 "); found {
					w.WriteHeader(http.StatusBadRequest)
					answer = refusal
				}
				_, _ = io.WriteString(w, strings.ReplaceAll(answer, "ISSUER", "http://"+r.Host))
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	parameters, err := readParameters("../../template.yaml")
	require.NoError(t, err)
	var out bytes.Buffer
	d := &deployment{
		out: &out, parameters: parameters, given: map[string]string{}, kept: map[string]string{}, answers: map[string]string{}, stack: "adjourn",
		account: &account{awscall.Caller{Client: server.Client(), Now: time.Now, Most: 4 << 20, Config: aws.Config{
			Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		}}},
	}
	return d, server.URL, &out
}

// TestOpenAccount_regions: what is no region would be a host of somebody's.
func TestOpenAccount_regions(t *testing.T) {
	t.Parallel()
	for _, region := range []string{"eu-west-1", "us-gov-east-1", "ap-southeast-2", "eusc-de-east-1", "us-iso-west-1"} {
		a, err := openAccount(t.Context(), region)
		require.NoError(t, err, region)
		require.Equal(t, region, a.Config.Region)
	}
	for _, region := range []string{"evil.example/#", "evil.example:443/", "x@evil.example/?", "eu-west-1.evil.example/#", "eu-west-1\n", "EU-WEST-1", "eu west 1", "-"} {
		_, err := openAccount(t.Context(), region)
		var w *wrongError
		require.ErrorAs(t, err, &w, region)
	}
}

func TestCheckIssuer(t *testing.T) {
	t.Parallel()
	const good = `{"issuer": "ISSUER", "jwks_uri": "ISSUER/keys"}`
	for name, c := range map[string]struct{ document, keys, wrong string }{
		"good":             {good, `{"keys": [{"kty": "EC"}, {"kty": "RSA"}]}`, ""},
		"keys of a curve":  {good, `{"keys": [{"kty": "EC"}]}`, "no RSA key"},
		"keys are missing": {good, `400 `, "answers 400"},
		"no JSON":          {"<html>", "", "is no JSON"},
		"no issuer":        {`{"jwks_uri": "x"}`, "", "no discovery document"},
		"no keys":          {`{"issuer": "ISSUER"}`, "", "names no jwks_uri"},
		"another":          {`{"issuer": "https://\u001b[31mother.example"}`, "", `calls itself "https://\x1b[31mother.example"`},
		"slash":            {`{"issuer": "ISSUER/", "jwks_uri": "x"}`, "", "the slash at the end counts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, issuer, _ := answering(t, map[string]string{"openid-configuration": c.document, "/keys": c.keys})
			err := d.checkIssuer(t.Context(), issuer)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			var w *wrongError
			require.ErrorAs(t, err, &w)
			require.Contains(t, w.words, c.wrong)
		})
	}
	d, issuer, _ := answering(t, nil)
	d.account.Config.BaseEndpoint = nil
	require.ErrorContains(t, d.checkIssuer(t.Context(), issuer), "is not https://", "http is for a local AWS alone")
}

func TestCheckSecretAndTopic(t *testing.T) {
	t.Parallel()
	d, _, out := answering(t, map[string]string{
		"GetSecretValue":     `400 {"__type": "com.amazonaws#AccessDeniedException", "message": "no"}`,
		"GetTopicAttributes": `400 <ErrorResponse><Error><Code>AuthorizationError</Code><Message>no</Message></Error></ErrorResponse>`,
	})
	require.ErrorContains(t, d.checkSecret(t.Context(), "adjourn-models"), "may not read the secret")
	const key = "sk-proj-0123456789abcdefghijklmnopqrstuv"
	err := d.checkSecret(t.Context(), key)
	require.ErrorContains(t, err, "looks like the key itself")
	require.NotContains(t, err.Error(), key)
	require.NoError(t, d.checkTopic(t.Context(), "arn:aws:sns:eu-west-1:1:alarms"), "alarms do not need what the deployer may see")
	require.Contains(t, out.String(), "Not checked")

	d.answers["Model"] = "openai:gpt-5-mini"
	require.ErrorContains(t, d.checkSecret(t.Context(), ""), "needs a key")
	d.given["OpenAIBaseUrl"] = "http://10.0.0.1/v1"
	require.NoError(t, d.checkSecret(t.Context(), ""), "a server of one's own may need none")
}

func TestCheckConcurrency(t *testing.T) {
	t.Parallel()
	const young = `{"AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}}`
	d, _, out := answering(t, map[string]string{"account-settings": young})
	require.NoError(t, d.checkConcurrency(t.Context()))
	require.Contains(t, out.String(), "The account runs 10 invocations at once; 5 are for steps")
	d.given["MaxConcurrency"] = "10"
	require.ErrorContains(t, d.checkConcurrency(t.Context()), "deploy with MaxConcurrency=5")
	d.given = map[string]string{"ReserveConcurrency": "true"}
	require.ErrorContains(t, d.checkConcurrency(t.Context()), "deploy with ReserveConcurrency=false")

	d, _, out = answering(t, nil)
	require.NoError(t, d.checkConcurrency(t.Context()))
	require.Contains(t, out.String(), "Not checked")
}

func TestLook(t *testing.T) {
	t.Parallel()
	stackIs := func(status string) map[string]string {
		return map[string]string{
			"GetCallerIdentity": `<R><GetCallerIdentityResult><Account>123456789012</Account><Arn>arn:me</Arn></GetCallerIdentityResult></R>`,
			"DescribeStacks": `<R><DescribeStacksResult><Stacks><member><StackStatus>` + status + `</StackStatus>
				<Parameters><member><ParameterKey>JwtIssuer</ParameterKey><ParameterValue>https://old</ParameterValue></member></Parameters></member></Stacks></DescribeStacksResult></R>`,
		}
	}
	d, _, out := answering(t, stackIs("UPDATE_COMPLETE"))
	require.NoError(t, d.look(t.Context()))
	require.Contains(t, out.String(), "Stack adjourn in eu-west-1, account 123456789012: an update.")
	require.Equal(t, "https://old", d.effective("JwtIssuer"), "what the stack says is the default")
	d, _, _ = answering(t, stackIs("REVIEW_IN_PROGRESS"))
	require.NoError(t, d.look(t.Context()))
	require.Nil(t, d.there, "nothing was ever deployed as it")
	d, _, _ = answering(t, stackIs("UPDATE_IN_PROGRESS"))
	require.ErrorContains(t, d.look(t.Context()), "wait until that has ended")
	d, _, _ = answering(t, stackIs("ROLLBACK_COMPLETE"))
	require.ErrorContains(t, d.look(t.Context()), "sam delete --stack-name adjourn")
	d, _, _ = answering(t, map[string]string{"": `400 <E><Error><Code>InvalidClientTokenId</Code><Message>bad</Message></Error></E>`})
	require.ErrorContains(t, d.look(t.Context()), "aws configure")
}

func TestReadGiven(t *testing.T) {
	t.Parallel()
	given := func(env map[string]string) (map[string]string, error) {
		d, _, _ := answering(t, nil)
		err := d.readGiven(func(name string) string { return env[name] })
		return d.given, err
	}
	got, err := given(map[string]string{"MAKEFLAGS": ` -- Model= JwtIssuer=a\ Other=b`, "JwtIssuer": "a Other=b", "MaxWait": "3", "HOME": "x"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Model": "", "JwtIssuer": "a Other=b", "MaxWait": "3"}, got)
	_, err = given(map[string]string{"MAKEFLAGS": " -- JwtIsuer=x"})
	require.ErrorContains(t, err, "no parameter JwtIsuer; it has AlarmTopicArn, ")
	_, err = given(map[string]string{"MaxWait": "21"})
	require.ErrorContains(t, err, `MaxWait=21: "21" must be whole seconds, from 0 to 20`)
	_, err = given(map[string]string{"MaxConcurrency": "1001"})
	require.ErrorContains(t, err, "MaxConcurrency=1001: it is 1000 at most")
	_, err = given(map[string]string{"StepTimeout": "77"})
	require.ErrorContains(t, err, `"77" is none of 120, 300, 600, 900`)
}

// TestWriteDown: a table is protected once it is there, and never before.
func TestWriteDown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there       bool
		kept        string
		given, want string
		after       bool
	}{
		"first":                           {after: true},
		"first, after one that is gone":   {kept: "true", after: true},
		"first, and nobody wants it":      {kept: "false", want: "false"},
		"first, and it is insisted on":    {given: "true", want: "true"},
		"an update":                       {there: true, want: "true"},
		"an update where nobody wants it": {there: true, kept: "false", want: "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _, _ := answering(t, nil)
			p := d.parameters["DeletionProtection"]
			p.Default.Value = "false"
			d.parameters["DeletionProtection"] = p
			content := ""
			if c.kept != "" {
				d.kept["DeletionProtection"] = c.kept
				content = "[" + overrideTable + "]\nDeletionProtection = \"" + c.kept + "\"\n"
			}
			d.config = fileOf(t, content)
			if c.given != "" {
				d.given["DeletionProtection"] = c.given
			}
			if c.there {
				d.there = &awscall.Stack{}
			}
			d.answers["JwtIssuer"] = "https://a"
			after, err := d.writeDown()
			require.NoError(t, err)
			require.Equal(t, c.after, after)
			got, err := d.config.overrides()
			require.NoError(t, err)
			require.Equal(t, c.want, got["DeletionProtection"])
			raw, err := os.ReadFile(d.config.path)
			require.NoError(t, err)
			require.Contains(t, string(raw), "JwtIssuer = \"https://a\"\n")
			left, err := filepath.Glob(filepath.Join(filepath.Dir(d.config.path), "*"))
			require.NoError(t, err)
			require.Len(t, left, 1)
		})
	}
}

// TestAsk_callers: one word about who comes in, whatever was said before.
func TestAsk_callers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, kept, want map[string]string }{
		"everybody": {
			given: map[string]string{"AllowUnauthenticated": "true"}, kept: map[string]string{"JwtIssuer": "https://old", "JwtAudience": "a"},
			want: map[string]string{"JwtIssuer": "", "JwtAudience": "", "FixedTenant": ""},
		},
		"by IAM": {
			kept: map[string]string{"IamTenant": "ops"}, want: map[string]string{"JwtIssuer": "", "JwtAudience": "", "FixedTenant": ""},
		},
		"one tenant": {
			given: map[string]string{"JwtIssuer": "ISSUER", "JwtAudience": "a", "TenantClaim": "=acme"}, kept: map[string]string{"TenantClaim": "org"},
			want: map[string]string{"TenantClaim": "tenant", "FixedTenant": "acme", "JwtAudience": "a"},
		},
		"one tenant, kept": {
			given: map[string]string{"JwtIssuer": "ISSUER", "JwtAudience": "a"}, kept: map[string]string{"FixedTenant": "acme"},
			want: map[string]string{"TenantClaim": "tenant", "FixedTenant": "acme"},
		},
		"a claim again": {
			given: map[string]string{"JwtIssuer": "ISSUER", "JwtAudience": "a", "TenantClaim": "org"}, kept: map[string]string{"FixedTenant": "acme"},
			want: map[string]string{"TenantClaim": "org", "FixedTenant": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, at, _ := answering(t, map[string]string{
				"openid-configuration": `{"issuer": "ISSUER", "jwks_uri": "ISSUER/keys"}`, "/keys": `{"keys": [{"kty": "RSA"}]}`,
			})
			for name, value := range c.given {
				d.given[name] = strings.Replace(value, "ISSUER", at, 1)
			}
			for name, value := range c.kept {
				d.kept[name] = value
			}
			require.NoError(t, d.ask(t.Context()))
			for name, value := range c.want {
				got, said := d.answers[name]
				require.True(t, said, name)
				require.Equal(t, value, got, name)
			}
		})
	}
	d, _, _ := answering(t, nil)
	require.ErrorContains(t, d.checkClaim(t.Context(), "="), "no tenant stands behind")
	require.ErrorContains(t, d.checkAnswer(t.Context(), questions[2], "=a b"), "must be")
}

// TestAsk_help: a question mark is no answer, at any question.
func TestAsk_help(t *testing.T) {
	t.Parallel()
	for i, q := range questions {
		d, _, out := answering(t, nil)
		d.typed = lines(strings.NewReader("?\n"))
		_, err := d.put(t.Context(), i+1, q, "")
		require.ErrorIs(t, err, errLeft, q.name)
		require.Equal(t, 2, strings.Count(out.String(), q.why), "%s: %s", q.name, out)
		require.NotContains(t, out.String(), "No:", q.name)
	}
}

// TestAsk: at the end of the input, and when interrupted, nothing is answered.
func TestAsk_left(t *testing.T) {
	t.Parallel()
	d, _, _ := answering(t, nil)
	d.terminal, d.typed = true, lines(strings.NewReader("ftp://x\nhalf a line"))
	require.ErrorIs(t, d.ask(t.Context()), errLeft)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.typed = make(chan string)
	require.ErrorIs(t, d.ask(ctx), errLeft)
}
