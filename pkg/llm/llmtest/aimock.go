package llmtest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Aimock starts the third-party model server aimock, which is installed in folder, with
// the answers of a file, and returns its address. Others wrote it, and that is why it is
// used: our own fixtures share our mistakes. Where it is not installed the test is
// skipped, or fails with ADJOURN_REQUIRE_AIMOCK.
func Aimock(t *testing.T, folder, fixtures string) string {
	t.Helper()
	cli := filepath.Join(folder, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(cli)
	}
	if err != nil {
		how := "run `make test-openai`, or `npm ci` in " + folder + " (needs Node 20.15 or newer)"
		if os.Getenv("ADJOURN_REQUIRE_AIMOCK") != "" {
			t.Fatalf("the model server is not installed: %v; %s", err, how)
		}
		t.Skipf("SKIPPED, the adapter is not tried against a foreign server: %v; %s", err, how)
	}

	cmd := exec.CommandContext(t.Context(), node, cli, "--port", "0", "--fixtures", fixtures, "--strict", "--validate-on-load")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, so it has an error to report
	})

	address := make(chan string, 1)
	var said strings.Builder
	go func() {
		defer close(address)
		lines, listening := bufio.NewScanner(stdout), regexp.MustCompile(`listening on (http://\S+)`)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
				break
			}
		}
		for lines.Scan() { // a full pipe would stop the server
			continue
		}
	}()
	select {
	case url, ok := <-address:
		require.True(t, ok, "the model server ended: %s", &said)
		return url
	case <-time.After(patience):
		t.Fatal("the model server did not start")
		return ""
	}
}
