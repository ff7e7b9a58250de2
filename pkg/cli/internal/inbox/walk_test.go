package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/prompt"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// desk is the sessions that wait; one goroutine may be in it at a time.
type desk struct {
	mu     sync.Mutex
	waits  []client.Wait
	passed time.Duration
	// did is what was asked of it.
	did []string
	// before runs before a wait is read the nth time from now.
	before func(d *desk)
	tools  map[string]tool.Tool
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return epoch.Add(d.passed)
}

// passes lets time pass.
func (d *desk) passes(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passed += by
}

func (d *desk) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.did, "\n")
}

func (d *desk) open() (open []client.Wait) {
	for _, w := range d.waits {
		if w.State == session.WaitOpen {
			open = append(open, w)
		}
	}
	return open
}

func (d *desk) Inbox(context.Context, client.InboxParams) (client.Waits, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return client.Waits{Items: d.open()}, nil
}

func (d *desk) find(id string) *client.Wait {
	for i := range d.waits {
		if d.waits[i].SessionID == id {
			return &d.waits[i]
		}
	}
	return nil
}

func (d *desk) Wait(_ context.Context, id, _ string) (client.WaitView, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before != nil {
		d.before(d)
		d.before = nil
	}
	w := d.find(id)
	if w == nil {
		return client.WaitView{}, errors.New("there is no such wait")
	}
	return client.WaitView{
		Wait: *w, MayAnswer: true, Task: 1, Open: 1, Messages: []client.SaidMessage{{Role: llm.RoleUser, Text: "deploy " + id}},
		Used: session.Amounts{Steps: 1},
	}, nil
}

func (d *desk) Submit(_ context.Context, p client.SubmitParams) (client.Submitted, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	word := "reject"
	if *p.Answer.Approved {
		word = "approve"
	}
	d.did = append(d.did, strings.TrimSpace(fmt.Sprintf("%s %s %s %s%s", word, p.SessionID, p.Answer.ApprovalID, p.Answer.Reason, p.Answer.EditedInput)))
	if w := d.find(p.SessionID); w.VotesMissing > 1 {
		w.VotesMissing--
		return client.Submitted{VotesMissing: w.VotesMissing}, nil
	}
	d.find(p.SessionID).State = session.WaitAnswered
	return client.Submitted{}, nil
}

func (d *desk) Extend(_ context.Context, p client.ActParams[client.ExtendRequest]) (client.Acted, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, "extend "+p.SessionID+" "+p.Request.Deadline.Format(time.RFC3339))
	d.find(p.SessionID).Deadline = &session.Deadline{At: p.Request.Deadline, Outcome: session.ExpireDeny}
	return client.Acted{}, nil
}

func (d *desk) Delegate(_ context.Context, p client.ActParams[client.DelegateRequest]) (client.Acted, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.did = append(d.did, "delegate "+p.SessionID+" "+p.Request.To)
	d.find(p.SessionID).Acts = []session.WaitAct{{Kind: session.ActDelegated, Who: "ann", To: p.Request.To, At: epoch}}
	return client.Acted{}, nil
}

func (d *desk) Tool(_, name string) (tool.Tool, bool) {
	t, ok := d.tools[name]
	return t, ok
}

type deployIn struct {
	Service string `json:"service"`
}

// approval waits in a session of its own.
func approval(id, service string) client.Wait {
	arguments, _ := json.Marshal(deployIn{service})
	return client.Wait{
		SessionID: id, WaitID: "w2-1", Kind: session.WaitApproval, State: session.WaitOpen, Agent: "desk", Tool: "deploy", CallID: "c2-1", ApprovalID: "w2-1_" + id,
		Arguments: arguments, Digest: journal.Digest(arguments), OpenedAt: epoch, Deadline: &session.Deadline{At: epoch.Add(time.Hour), Outcome: session.ExpireDeny},
	}
}

// person sits at a terminal at which the inbox of a desk is walked through.
type person struct {
	t      *testing.T
	desk   *desk
	tty    *os.File
	unread string
	ended  chan error
}

func sits(t *testing.T, d *desk, rows uint16) *person {
	t.Helper()
	keyboard, terminal, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: rows, Cols: 100}))
	require.NoError(t, keyboard.SetReadDeadline(time.Now().Add(2*time.Minute)))
	d.tools = map[string]tool.Tool{"deploy": tool.Define(tool.Spec[deployIn]{Name: "deploy"}, func(context.Context, *tool.Call, deployIn) (string, error) { return "", nil })}
	s := screen.New(screen.Config{Name: "adjourn", Stdout: terminal, Stderr: terminal, Env: func(string) string { return "" }})
	w := &walker{s: s, out: terminal, now: d.now, e: d, decided: map[string]bool{}, hint: func(client.Wait) string { return "adjourn submit" }}
	require.NoError(t, w.load(t.Context()))
	p := &person{t: t, desk: d, tty: keyboard, ended: make(chan error, 1)}
	go func() {
		p.ended <- w.walkRaw(t.Context(), terminal, func(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
			return prompt.ReadJSON(strings.ReplaceAll(string(arguments), "web", "api"))
		})
		_ = terminal.Close()
	}()
	t.Cleanup(func() { _ = keyboard.Close() })
	return p
}

// sees waits until something is on the screen, after what was seen before.
func (p *person) sees(text string) *person {
	p.t.Helper()
	buffer := make([]byte, 4096)
	for {
		if _, after, found := strings.Cut(p.unread, text); found {
			p.unread = after
			return p
		}
		n, err := p.tty.Read(buffer)
		p.unread += string(buffer[:n])
		require.NoError(p.t, err, "waiting for %q, saw: %q", text, p.unread)
	}
}

// types presses keys at once; waits first lets a moment pass, so that they may count.
func (p *person) types(text string) *person {
	p.t.Helper()
	_, err := p.tty.WriteString(text)
	require.NoError(p.t, err)
	return p
}

func (p *person) waits() *person {
	p.desk.passes(settles)
	return p
}

// leaves ends it, and requires what was asked of the desk.
func (p *person) leaves(did ...string) {
	p.t.Helper()
	p.types("\x03")
	buffer := make([]byte, 4096)
	for done := false; !done; { // what nobody reads holds the program up
		select {
		case err := <-p.ended:
			require.NoError(p.t, err)
			done = true
		default:
			if _, err := p.tty.Read(buffer); err != nil {
				require.NoError(p.t, <-p.ended)
				done = true
			}
		}
	}
	require.Equal(p.t, strings.Join(did, "\n"), p.desk.log())
}

func two() *desk { return &desk{waits: []client.Wait{approval("one", "web"), approval("two", "mail")}} }

// TestWalk: what a person does with the keys, on a terminal.
func TestWalk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(p *person)
		did  []string
	}{
		"approve": {func(p *person) {
			p.sees("> approval of deploy  session one").types("\r").sees(`"service": "web"`).sees(cardKeys).waits().types("a").sees("Approved: deploy of session one.").sees(listKeys)
		}, []string{"approve one w2-1_one"}},
		"the second, with j": {func(p *person) {
			p.sees(listKeys).types("j").sees("> approval of deploy  session two").types("\r").sees(`"service": "mail"`).sees(cardKeys).waits().types("a").sees("Approved").sees(listKeys)
		}, []string{"approve two w2-1_two"}},
		"with arrows": {func(p *person) {
			p.sees(listKeys).types("\x1b[B").sees("> approval of deploy  session two").types("\x1b[A").sees("> approval of deploy  session one").types("jjjj").sees("> approval of deploy  session two").types("kkk").sees("> approval of deploy  session one")
		}, nil},
		"deny with a reason, typed with letters that are keys": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("d").sees("Reject, because: ").types("a bad idea, egad").sees("a bad idea, egad").types("\r").sees("Rejected").sees(listKeys)
		}, []string{"reject one w2-1_one a bad idea, egad"}},
		"deny without a reason": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("d").sees("Reject, because: ").types("  \r").sees("Nothing was typed").sees(cardKeys)
		}, nil},
		"deny, and think again": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("d").sees("Reject, because: ").types("aaa").sees("aaa").types("\x1b").sees("Nothing was done.").sees(cardKeys).types("a").types("q").types("a")
		}, nil},
		"a letter taken back": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("d").sees("Reject, because: ").types("nox\x7f").types("\r").sees("Rejected").sees(listKeys)
		}, []string{"reject one w2-1_one no"}},
		"edit": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("e").sees("With arguments that you changed").sees(`"service": "api"`).sees(cardKeys).types("a").sees(cardKeys).waits().types("a").sees("Approved").sees(listKeys)
		}, []string{`approve one w2-1_one {"service":"api"}`}},
		"delegate": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("g").sees("Delegate to: ").types("dana\r").sees("delegated to dana by ann").sees("Delegated to dana.").sees(cardKeys)
		}, []string{"delegate one dana"}},
		"extend": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("x").sees("Longer by (as 2h): ").types("90m\r").sees("Extended by 90m.").sees(cardKeys).waits().types("x").sees("Longer by").types("soon\r").sees("Nothing was done:").sees(cardKeys)
		}, []string{"extend one " + epoch.Add(150*time.Minute).Format(time.RFC3339)}},
		"Enter approves nothing": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("\r\r\r").waits().types("\r")
		}, nil},
		"a key in the moment in which the card appears": {func(p *person) {
			p.sees(listKeys).types("\ra").sees(cardKeys).types("a").desk.passes(settles - time.Millisecond)
			p.types("a").types("d")
		}, nil},
		"letters in the list decide nothing": {func(p *person) {
			p.sees(listKeys).waits().types("aaaddd").sees("Enter opens it first.").sees(listKeys)
		}, nil},
		"an escape that is cut in two": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("\x1b").sees(listKeys).types("[a").sees(listKeys)
		}, nil},
		"Alt-a is not a": {func(p *person) {
			p.sees(listKeys).types("\r").sees(cardKeys).waits().types("\x1ba")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sits(t, two(), 40)
			c.does(p)
			p.leaves(c.did...)
		})
	}
}

// TestWalk_a_key_held_down: a key that repeats decides one card at most, however long it is held.
func TestWalk_a_key_held_down(t *testing.T) {
	t.Parallel()
	for _, held := range []string{"a", "\r", "d", "e", "g", "x", "a\r", "\ra"} {
		t.Run(fmt.Sprintf("%q", held), func(t *testing.T) {
			t.Parallel()
			d := &desk{}
			for i := range 5 {
				d.waits = append(d.waits, approval(fmt.Sprintf("s%d", i), "web"))
			}
			p := sits(t, d, 40)
			p.sees(listKeys).types("\r").sees(cardKeys).waits()
			for range 20 { // every 30 ms, as keyboards do; each time the screen is painted anew
				p.types(held).sees("\x1b[2J")
				d.passes(30 * time.Millisecond)
			}
			decisions := 0
			for line := range strings.Lines(d.log()) {
				if strings.HasPrefix(line, "approve") || strings.HasPrefix(line, "reject") {
					decisions++
				}
			}
			require.LessOrEqual(t, decisions, 1)
			_, err := p.tty.WriteString("\x03")
			require.NoError(t, err)
		})
	}
}

// TestWalk_a_card_that_is_replaced: what waits is replaced just before a key is pressed, by other arguments,
// somebody's answer, or a deadline; the key does not count, the new card is shown, and it takes a moment.
func TestWalk_a_card_that_is_replaced(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(d *desk){
		"other arguments":   func(d *desk) { d.waits[0] = approval("one", "production") },
		"another approval":  func(d *desk) { d.waits[0].ApprovalID = "w2-1_other" },
		"a later deadline":  func(d *desk) { d.waits[0].Deadline = &session.Deadline{At: epoch.Add(9 * time.Hour)} },
		"somebody's answer": func(d *desk) { d.waits[0].State = session.WaitAnswered },
	} {
		for _, key := range []string{"a", "d", "e", "g", "x"} {
			t.Run(name+"/"+key, func(t *testing.T) {
				t.Parallel()
				p := sits(t, two(), 40)
				p.sees(listKeys).types("\r").sees(cardKeys).waits()
				p.desk.mu.Lock()
				p.desk.before = replace
				p.desk.mu.Unlock()
				p.types(key).sees("It has changed since it was shown. Look again.").sees(cardKeys).types(key)
				p.leaves()
			})
		}
	}
	t.Run("while a reason is typed", func(t *testing.T) {
		t.Parallel()
		p := sits(t, two(), 40)
		p.sees(listKeys).types("\r").sees(cardKeys).waits().types("d").sees("Reject, because: ").types("no").sees("no")
		p.desk.mu.Lock()
		p.desk.before = func(d *desk) { d.waits[0] = approval("one", "production") }
		p.desk.mu.Unlock()
		p.types("\r").sees("It has changed since it was shown.").sees(cardKeys)
		p.leaves()
	})
}

// TestWalk_high_risk: to approve it the word has to be typed; Enter, or another word, approves nothing.
func TestWalk_high_risk(t *testing.T) {
	t.Parallel()
	risky := func(risk session.Risk) *desk {
		d := two()
		d.waits[0].Preview = &session.Preview{Title: "Deploy", Risk: risk}
		return d
	}
	p := sits(t, risky("grave"), 40)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("a").sees("type approve: ").types("\r").sees("Nothing was typed").sees(cardKeys)
	p.waits().types("a").sees("type approve: ").types("aaaaaaa\r").sees("that is not the word").sees(cardKeys)
	p.leaves()
	p = sits(t, risky(session.RiskMedium), 40)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("a").sees("Approved").sees(listKeys)
	p.leaves("approve one w2-1_one")
	p = sits(t, risky(session.RiskHigh), 40)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("a").sees("type approve: ").types("approve\r").sees("Approved").sees(listKeys)
	p.leaves("approve one w2-1_one")
	p = sits(t, risky(session.RiskLow), 40)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("e").sees("With arguments that you changed").sees(cardKeys)
	p.waits().types("a").sees("not known with these arguments. To approve it type approve: ").types("approve\r").sees("Approved").sees(listKeys)
	p.leaves(`approve one w2-1_one {"service":"api"}`)
}

// TestWalk_a_vote: where several people must approve, one who did is not told that it is approved.
func TestWalk_a_vote(t *testing.T) {
	t.Parallel()
	d := two()
	d.waits[0].VotesMissing = 3
	p := sits(t, d, 40)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("a").sees("Your vote is stored. 2 more must approve: deploy of session one.").sees(listKeys)
	p.leaves("approve one w2-1_one")
}

// TestWalk_what_was_not_seen: a card that is longer than the screen is approved once all of it was there;
// one whose arguments were left out is not.
func TestWalk_what_was_not_seen(t *testing.T) {
	t.Parallel()
	d := two()
	long := approval("one", strings.Repeat("very long ", 200))
	d.waits[0] = long
	p := sits(t, d, 15)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("a").sees("You have not seen all of it").sees(cardKeys)
	for range 6 {
		p.waits().types(" ").sees(cardKeys)
	}
	p.waits().types("a").sees("Approved").sees(listKeys)
	p.leaves("approve one w2-1_one")

	d = two()
	d.waits[0].Arguments = json.RawMessage(`"[left out: 9 bytes]"`)
	p = sits(t, d, 40)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("a").sees("too large for the server to send").sees(cardKeys)
	p.leaves()
}

// TestWalk_edited_badly: arguments that the tool would not take are not sent.
func TestWalk_edited_badly(t *testing.T) {
	t.Parallel()
	d := two()
	d.waits[0].Arguments = json.RawMessage(`{"service":"x","web":1}`)
	d.waits[0].Digest = journal.Digest(d.waits[0].Arguments)
	p := sits(t, d, 40)
	p.sees(listKeys).types("\r").sees(cardKeys).waits().types("e").sees("The arguments stay as they are: not valid").sees(cardKeys)
	p.leaves()
}

// TestWalk_is_harmless: what an agent wrote moves nothing on the screen.
func TestWalk_is_harmless(t *testing.T) {
	t.Parallel()
	d := two()
	d.waits[0].Tool = "dep\x1b[2Jloy\n> FAKE"
	p := sits(t, d, 40)
	p.sees("session one").types("\r").sees(cardKeys)
	require.NotContains(t, p.unread, "loy\r\n> FAKE")
	p.leaves()
}
