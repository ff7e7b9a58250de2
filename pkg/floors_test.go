package pkg_test

import (
	"testing"
)

// module is the path that makes an import ours.
const module = "github.com/adjourn/adjourn"

// plan is the house as decided: every room with its floor, every guest module
// with the rooms that may let it in. A room imports rooms on lower floors and
// nothing on its own; adapters and kits stand one floor above their port.
// A change here is a decision: say why in the commit.
var plan = house{
	floors: map[string]float64{
		"pkg/llm":             0,
		"internal/goldentest": 0,
		"internal/visible":    0,
		"internal/grant":      0,
		"internal/owned":      0, // what a data file, its keys and the commands' memory of it are checked by

		"pkg/llm/internal/remote": 0.5, // what adapters of models behind HTTP do alike

		"pkg/session":         1,
		"pkg/session/journal": 1.5,
		"pkg/llm/openai":      1,
		"pkg/llm/anthropic":   1,
		"pkg/llm/scripted":    1,
		"pkg/llm/llmtest":     1,

		"pkg/tool":          2,
		"internal/engine":   2,
		"internal/toolcall": 1.5, // what pkg/tool keeps from its users
		"internal/standing": 1.6, // which calls a standing permission covers

		"pkg/tool/internal/jsontype": 1.9, // what encoding/json refuses in a tool's types
		"pkg/tool/internal/shape":    1.9, // what encoding/json makes of arguments

		"internal/toolrun": 2.5, // what the runtime and tooltest do alike

		"pkg/agent": 3,
		"pkg/store": 3,
		"pkg/queue": 3,

		"pkg/sqlite/internal/process":  3.8, // which process holds what
		"pkg/sqlite/internal/row":      3.8, // what store and queue write into a row, and read from it
		"pkg/sqlite/internal/datafile": 3.9, // what store and queue do their transactions with

		"pkg/sqlite":                       4,
		"pkg/store/dynamostore":            4,
		"pkg/tool/tooltest":                3,
		"pkg/store/storetest":              4,
		"pkg/queue/queuetest":              4,
		"pkg/queue/sqsqueue":               4,
		"pkg/runtime":                      4,
		"pkg/runtime/internal/refusal":     3.4, // why a verb is refused
		"pkg/runtime/internal/halts":       3.5, // the kill switch
		"pkg/runtime/internal/away":        3.5, // who stands in for whom
		"pkg/runtime/internal/logged":      3.4, // log lines that others read
		"pkg/runtime/internal/stored":      3.5, // what verbs, steps and the sweep stand on
		"pkg/runtime/internal/ledger":      3.6,
		"pkg/runtime/internal/answers":     3.6, // what callers say, checked
		"pkg/runtime/internal/idempotency": 3.6, // idempotency keys
		"pkg/runtime/internal/permissions": 3.6, // standing permissions
		"pkg/runtime/internal/audit":       3.7, // what is recorded of waits, and whether it is whole
		"pkg/runtime/internal/worker":      3.7, // what a delivered message does
		"pkg/runtime/internal/sweep":       3.7,
		"pkg/runtime/internal/control":     3.8, // verbs that stop a task, begin one from a checkpoint, or bring a message
		"pkg/runtime/internal/drive":       3.8, // a queue, a worker and the sweep

		"pkg/store/dynamostore/internal/retry":  3.8,
		"pkg/store/dynamostore/internal/bucket": 3.9,
		"pkg/store/dynamostore/internal/shards": 3.9,

		"model/internal/rules":  7.6,
		"model/internal/search": 7.6,
		"model/internal/chain":  7.7,

		"internal/floortest": 5,

		"internal/outbox":             3.5, // a store that writes notices along
		"internal/notice":             3.6, // sends them
		"internal/notice/webhook":     3.7,
		"internal/notice/eventbridge": 3.7,
		"internal/notice/slack":       3.7,

		"internal/codes":                   0,
		"pkg/client":                       5,
		"pkg/httpapi/internal/refused":     5,   // a refusal of a door
		"pkg/httpapi/internal/roles":       5,   // names of roles
		"pkg/httpapi/internal/apikey":      5.2, // keys of the local server
		"pkg/httpapi/internal/foreign":     5.2,
		"pkg/httpapi/internal/jsonbody":    5.3, // bodies, read strictly
		"pkg/httpapi/internal/link":        5.4, // links and their page
		"pkg/httpapi/internal/interaction": 5.4, // what buttons in Slack ask
		"pkg/httpapi":                      5.5, // it sends what the client reads

		"agents/confined":                  5.4,  // what agents that have files stand on
		"agents/janitor/internal/deletion": 5.45, // under the janitor, which alone deletes

		"agents/lab":     5.5, // an agent stands just under the registry that lists it
		"agents/janitor": 5.5,

		"agents/lab/labtest": 6,

		"pkg/app":            6,
		"pkg/app/embedded":   6.5,
		"pkg/app/serverless": 6.5,
		"agents":             6,

		"internal/private": 6.55, // what the commands leave on the disk beside the data file

		"pkg/cli/internal/known":   6.6, // which data files this user has used
		"pkg/cli/internal/dev":     6.6, // the commands stand on what they are made of, from the terminal up to the person at it
		"internal/screen":          6.6,
		"pkg/cli/internal/exit":    6.7,
		"pkg/cli/internal/place":   6.8,
		"pkg/cli/internal/report":  6.9,
		"pkg/cli/internal/demo":    6.95,
		"pkg/cli/internal/list":    6.95,
		"pkg/cli/internal/prompt":  6.95,
		"pkg/cli/internal/answers": 6.96,
		"pkg/cli/internal/work":    6.96,
		"pkg/cli/internal/inbox":   6.97,
		"pkg/cli":                  7,

		"internal/terminaltest": 6.6,

		"pkg/lambdafn":        7,
		"internal/lambdatest": 8,

		"internal/policyfile": 5.9, // a policy of tools as people write it, for settings and flags

		"internal/awscall": 3.4, // programs of floor 8 stand on it, and a channel of notices

		"localstack/issuer": 8,
		"localstack/smoke":  8,

		"cmd/adjourn":      8,
		"cmd/deploy":       8,
		"cmd/erase":        8,
		"model":            8,
		"scale":            8,
		"functions/start":  8,
		"functions/step":   8,
		"functions/resume": 8,
		"functions/submit": 8,
		"functions/query":  8,
		"functions/event":  8,
		"functions/sweep":  8,
		"functions/notice": 8,
		"examples/support": 8,
		"examples/tour":    8,
	},
	// kits hold the contract of a port; only _test.go files import them.
	kits: []string{"internal/goldentest", "pkg/tool/tooltest", "pkg/llm/llmtest", "pkg/store/storetest", "pkg/queue/queuetest", "internal/floortest", "internal/lambdatest", "agents/lab/labtest", "internal/terminaltest"},
	// guests lists outside modules; what is not here is the standard library's
	// job. An empty list means tests only. The rule reads non-test files:
	// a test may use what it likes, for it is in nobody's binary.
	guests: map[string][]string{
		"github.com/klauspost/compress":              {"pkg/session/journal"},
		"github.com/google/jsonschema-go":            {"pkg/tool", "pkg/agent"},
		"github.com/santhosh-tekuri/jsonschema":      {"pkg/tool", "pkg/agent"},
		"modernc.org/sqlite":                         {"pkg/sqlite/internal/datafile", "internal/floortest"},
		"modernc.org/libc":                           {"pkg/sqlite/internal/datafile"}, // what SQLite's own functions take
		"github.com/spf13/cobra":                     {"pkg/cli", "pkg/cli/internal/inbox", "pkg/cli/internal/list", "pkg/cli/internal/work"},
		"github.com/spf13/pflag":                     {"pkg/cli", "pkg/cli/internal/answers", "pkg/cli/internal/place", "pkg/cli/internal/work"}, // the flags in the types of cobra
		"golang.org/x/term":                          {"internal/screen"},
		"golang.org/x/sys":                           {"pkg/cli/internal/prompt", "internal/owned"}, // throws away what was typed too early; when a file was made
		"github.com/openai/openai-go/v3":             {"pkg/llm/openai"},
		"github.com/anthropics/anthropic-sdk-go":     {"pkg/llm/anthropic"},
		"go.yaml.in/yaml/v4":                         {"agents/lab", "pkg/httpapi", "internal/policyfile", "cmd/deploy"}, // the policy of tools that a person writes
		"github.com/stretchr/testify":                {"internal/goldentest", "pkg/llm/llmtest", "pkg/store/storetest", "pkg/queue/queuetest", "internal/floortest", "agents/lab/labtest", "internal/terminaltest"},
		"github.com/aws/aws-lambda-go":               {"pkg/lambdafn", "internal/lambdatest"},
		"github.com/aws/smithy-go":                   {"pkg/store/dynamostore/internal/retry", "pkg/store/dynamostore/internal/bucket", "pkg/queue/sqsqueue"}, // the types of its errors
		"github.com/aws/aws-sdk-go-v2":               {"pkg/app/serverless", "pkg/store/dynamostore", "pkg/store/dynamostore/internal/retry", "pkg/store/dynamostore/internal/bucket", "pkg/queue/sqsqueue", "internal/lambdatest", "internal/awscall", "internal/notice/eventbridge", "localstack/smoke", "cmd/deploy", "cmd/erase"},
		"github.com/BurntSushi/toml":                 {"cmd/deploy"}, // samconfig.toml
		"github.com/awslabs/aws-lambda-go-api-proxy": {"pkg/lambdafn"},
		"github.com/go-jose/go-jose/v4":              {"localstack/issuer"},
		"github.com/creack/pty":                      {"internal/terminaltest"},
		"github.com/getkin/kin-openapi":              {}, // holds the HTTP API to its document
	},
	// ceilings are the rooms longer than 2500 lines, tests apart, with the lines they
	// may have: what they had when this list was made, rounded up. It shrinks.
	ceilings: map[string]int{
		"pkg/httpapi":                 2650, // each route's handler
		"pkg/client":                  2785, // each route's JSON and method
		"pkg/tool":                    2560, // a tool's definition, with each rule about who decides
		"pkg/runtime":                 3280, // what each verb takes and returns, and its idempotency key; rooms below carry it out
		"pkg/cli":                     2725, // the words and flags of each command; rooms below carry it out
		"pkg/runtime/internal/worker": 2780, // one step, with what may stop it at any point
		"model/internal/chain":        2800, // one protocol, which is read as a whole
		"pkg/session":                 2660, // what users read of a session, and the words of what waits
		"internal/engine":             2520, // the whole chain, which does nothing but decide
		"pkg/sqlite":                  2800, // one writer for store and queue: both ports share its transaction
		"pkg/store/storetest":         2850,
	},
	// ports are the seams with two implementations; each at most seven methods.
	ports: map[string]string{
		"pkg/llm":   "Model",
		"pkg/store": "Store",
		"pkg/queue": "Queue",
	},
}

// The tests below read the tree themselves. A version that asked `go list` in a
// subprocess was answered "ok (cached)" after the rule had been broken, because
// the test cache does not see what a subprocess reads.

func TestFloors(t *testing.T) {
	t.Parallel()
	report(t, plan.floorFaults)
}

func TestPackageComments(t *testing.T) {
	t.Parallel()
	report(t, plan.commentFaults)
}

func TestFileLengths(t *testing.T) {
	t.Parallel()
	report(t, plan.lengthFaults)
}

func TestPorts(t *testing.T) {
	t.Parallel()
	report(t, plan.portFaults)
}

func TestShape(t *testing.T) {
	t.Parallel()
	report(t, plan.shapeFaults)
}

func report(t *testing.T, check func(root string) (faults, remarks []string, err error)) {
	t.Helper()
	faults, remarks, err := check("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range remarks {
		t.Log(r)
	}
	for _, f := range faults {
		t.Error(f)
	}
}
