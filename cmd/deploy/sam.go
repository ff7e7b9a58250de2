package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// findSAM is the SAM CLI on the PATH, or the one that localstack/install put into .tools.
func findSAM(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if path, err := exec.LookPath("sam"); err == nil {
		return path, nil
	}
	own := filepath.Join(".tools", "sam", "bin", "sam")
	if _, err := os.Stat(own); err != nil {
		return "", errors.New("the SAM CLI is missing: install it (https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/install-sam-cli.html), or run localstack/install sam, which puts it into .tools")
	}
	return filepath.Abs(own)
}

// sam runs SAM, which speaks to the person itself. Ctrl-C reaches it by the terminal,
// or is passed on, and it is waited for: it knows how to stop.
func (d *deployment) sam(ctx context.Context, args ...string) error {
	cmd := exec.Command(d.program, append(args, "--config-file", d.config.path, "--region", d.account.Config.Region)...) //nolint:noctx // an end of ctx is an interrupt, not a kill
	cmd.Stdout, cmd.Stderr = d.out, d.out
	cmd.Env = append(os.Environ(), "LAMBDA_ARCH="+d.effective("Architecture"))
	if os.Getenv("SAM_CLI_TELEMETRY") == "" {
		cmd.Env = append(cmd.Env, "SAM_CLI_TELEMETRY=0")
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("sam: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("sam %s: %w", args[0], err)
		}
	case <-ctx.Done():
		if !d.terminal {
			_ = cmd.Process.Signal(os.Interrupt)
		}
		<-ended //nolint:errcheck // it was asked to end, so its code says nothing
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}

var errInterrupted = errors.New("interrupted")

// build has SAM build the functions for the architecture they are deployed on.
func (d *deployment) build(ctx context.Context) error {
	d.say("sam build, for %s: some minutes the first time\n", d.effective("Architecture"))
	return d.sam(ctx, "build", "--template-file", d.template, "--build-dir", d.buildDir,
		"--parameter-overrides", "Architecture="+d.effective("Architecture"))
}

// deploy has SAM deploy what was built. The answers were the consent: no change set
// is asked about.
func (d *deployment) deploy(ctx context.Context) error {
	return d.sam(ctx, "deploy", "--template-file", filepath.Join(d.buildDir, "template.yaml"),
		"--stack-name", d.stack, "--resolve-s3", "--capabilities", "CAPABILITY_IAM",
		"--no-confirm-changeset", "--no-fail-on-empty-changeset")
}

func (d *deployment) say(format string, args ...any) {
	_, _ = io.WriteString(d.out, fmt.Sprintf(format, args...))
}
