package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// question is one answer that a deployment needs of a person, for one parameter.
type question struct {
	name string // of the template's parameter
	why  string
	// none: the answer none takes the default away.
	none  bool
	check func(d *deployment, ctx context.Context, answer string) error
}

// questions in the order in which they are asked.
var questions = []question{
	{
		name: "JwtIssuer", check: (*deployment).checkIssuer,
		why: "Whose tokens are let in: the issuer, as in their claim iss. Any OIDC provider\n   (Cognito, Auth0, Okta, Keycloak): https://…",
	},
	{
		name: "JwtAudience", check: (*deployment).checkAudience,
		why: "For whom these tokens are: the audience, as in their claim aud or client_id,\n   several with commas between. The issuer's tokens for other programs stay outside.",
	},
	{
		name: "TenantClaim", check: (*deployment).checkClaim,
		why: "Which claim says what tenant a caller belongs to. Nobody sees another tenant's\n   sessions, so it must be one that users cannot set themselves. Where no claim says it,\n   =NAME makes all callers those of the tenant NAME.",
	},
	{
		name: "Model", none: true, check: (*deployment).checkModel,
		why: "The model of every agent, such as openai:gpt-5-mini; none leaves each agent its own.",
	},
	{
		name: "ModelSecret", none: true, check: (*deployment).checkSecret,
		why: "Where the model's key is: the name of a secret in Secrets Manager, whose JSON\n   holds OPENAI_API_KEY. The step function alone gets it; none for none.",
	},
	{
		name: "AlarmTopicArn", none: true, check: (*deployment).checkTopic,
		why: "Who is told when something is wrong: the ARN of an SNS topic. With none alarms\n   only show in CloudWatch.",
	},
}

// errLeft is Ctrl-C, or the end of the input, at a question.
var errLeft = errors.New("left")

// lines reads the terminal, so that Ctrl-C need not wait for a line.
func lines(in io.Reader) <-chan string {
	read := make(chan string)
	go func() {
		defer close(read)
		var line []byte
		for b := make([]byte, 1); ; {
			n, err := in.Read(b)
			if n == 1 && b[0] != '\n' {
				line = append(line, b[0])
				continue
			}
			if n == 1 {
				read <- string(line)
				line = nil
			}
			if err != nil {
				return
			}
		}
	}()
	return read
}

// ask puts all questions, or checks what was given without one. What is wrong or
// missing without a terminal is returned together.
func (d *deployment) ask(ctx context.Context) error {
	// Callers come with tokens, or otherwise, and the template takes one word about it.
	without := ""
	switch {
	case d.effective("AllowUnauthenticated") == "true":
		without = "AllowUnauthenticated=true: everybody may come in, as one tenant"
	case d.effective("IamTenant") != "":
		without = "IamTenant=" + d.effective("IamTenant") + ": callers sign with IAM, all of one tenant"
	}
	if without != "" {
		d.say("%s. No issuer is asked for.\n\n", without)
		d.answers["JwtIssuer"], d.answers["JwtAudience"], d.answers["FixedTenant"] = "", "", ""
	}
	var faults []string
	for i, q := range questions {
		if without != "" && i < 3 {
			continue
		}
		given, isGiven := d.given[q.name]
		answer, err := given, error(nil)
		if !isGiven {
			answer = d.effective(q.name)
		}
		if fixed := d.effective("FixedTenant"); q.name == "TenantClaim" && fixed != "" && !isGiven {
			answer = "=" + fixed
		}
		if isGiven || !d.terminal {
			if q.none && answer == "none" {
				answer = ""
			}
			err = d.checkAnswer(ctx, q, answer)
		} else {
			answer, err = d.put(ctx, i+1, q, answer)
		}
		var w *wrongError
		switch {
		case errors.As(err, &w):
			faults = append(faults, fmt.Sprintf("%s=…  %s", q.name, w.words))
		case err != nil:
			return err
		}
		d.answers[q.name] = answer
		if q.name == "TenantClaim" {
			fixed, is := strings.CutPrefix(answer, "=")
			if is {
				d.answers[q.name], d.answers["FixedTenant"] = d.standard(q.name), fixed
			} else {
				d.answers["FixedTenant"] = ""
			}
		}
	}
	if faults != nil {
		return wrong("answers are missing or wrong; give them as in make deploy JwtIssuer=https://…, or ask for the questions by running it at a terminal:\n  %s", strings.Join(faults, "\n  "))
	}
	return nil
}

// put asks one question until its answer is right.
func (d *deployment) put(ctx context.Context, number int, q question, fallback string) (string, error) {
	d.say("%d. %s\n", number, q.why)
	for {
		shown := fallback
		if shown == "" && q.none {
			shown = "none"
		}
		if shown != "" {
			shown = " [" + shown + "]"
		}
		d.say("   %s%s: ", q.name, shown)
		var answer string
		select {
		case line, more := <-d.typed:
			if !more {
				return "", errLeft
			}
			answer = strings.TrimSpace(line)
		case <-ctx.Done():
			return "", errLeft
		}
		if answer == "?" { // help at the questions of the CLI, and the right answer to none of these
			d.say("   %s\n   docs/deploy.md says more.\n", q.why)
			continue
		}
		if answer == "" {
			answer = fallback
		}
		if q.none && answer == "none" {
			answer = ""
		}
		err := d.checkAnswer(ctx, q, answer)
		var w *wrongError
		if !errors.As(err, &w) {
			d.say("\n")
			return answer, err
		}
		if ctx.Err() != nil {
			return "", errLeft
		}
		d.say("   No: %s.\n", w.words)
	}
}

// checkAnswer holds an answer to the world, then to the template.
func (d *deployment) checkAnswer(ctx context.Context, q question, answer string) error {
	if err := q.check(d, ctx, answer); err != nil {
		return err
	}
	name := q.name
	if fixed, is := strings.CutPrefix(answer, "="); is && name == "TenantClaim" {
		name, answer = "FixedTenant", fixed
	}
	if fault := d.parameters[name].fault(answer); fault != "" {
		return wrong("%s", fault)
	}
	return nil
}
