package link

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/internal/visible"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// view is what a page shows. What others wrote is in it as they wrote it: the template makes it
// visible and escapes it.
type view struct {
	Title  string
	Notice string
	Tool   string
	// Asked, Sum and Whole are the arguments: all of them, or what they are with the whole at hand.
	Asked, Sum, Whole string
	Claim             string
	Rows              []row
	// Approve and Deny say which buttons there are. Word has to be typed before approving counts; empty
	// for none.
	Approve, Deny bool
	Word          string
	Commands      []string
	SignIn        string
}

type row struct{ Name, Value string }

// asking is the page of an open approval.
func (l *Links) asking(g grant.Grant, linked runtime.LinkedWait, now time.Time) view {
	w := linked.Record.Wait
	v := view{
		Title: "Approve " + w.Tool + "?", Tool: w.Tool, Claim: cmp.Or(w.Claim, w.Text),
		Rows: []row{{"Agent", linked.Record.Agent}, {"Session", g.Session}, {"Addressed to", g.Recipient}, {"Asked at", clock(w.OpenedAt)}},
	}
	v.Rows = append(previewRows(w.Preview), v.Rows...)
	if d := w.Deadline; d != nil {
		v.Rows = append(v.Rows, row{"Deadline", clock(d.At) + ", in " + span(d.At.Sub(now))}, row{"If nobody decides", then(*d)})
	} else {
		v.Rows = append(v.Rows, row{"Deadline", "none: it waits until somebody decides"})
	}
	v.Rows = append(v.Rows, row{"This link ends", clock(g.Expires)})
	v.Asked, v.Sum, v.Whole = arguments(w.Arguments)
	if linked.Undecidable != nil {
		v.Notice = "This cannot be decided by a link: " + runtime.AsError(linked.Undecidable).Message + "."
		for _, flag := range []string{"--approve", "--reject"} {
			v.Commands = append(v.Commands, l.command(g, flag))
		}
		v.SignIn = l.signIn
		return v
	}
	v.Approve, v.Deny = slices.Contains(g.Decisions, grant.Approve), slices.Contains(g.Decisions, grant.Deny)
	if v.Approve {
		v.Word = wordFor(w)
	}
	return v
}

// previewRows are what the tool itself shows of the call. Links are text: the page leads nowhere.
func previewRows(p *session.Preview) []row {
	if p == nil {
		return nil
	}
	all := []row{{"What it does", p.Title}, {"Risk", string(p.Risk)}, {"No preview", p.Failed}}
	if m := p.Money; m != nil {
		all = append(all, row{"Money", m.Amount + " " + m.Currency})
	}
	if d := p.Diff; d != nil {
		cut := ""
		if d.Cut {
			cut = " (not the whole of it)"
		}
		all = append(all, row{"Before" + cut, d.Name + "\n" + d.Before}, row{"After" + cut, d.Name + "\n" + d.After})
	}
	for _, l := range p.Links {
		all = append(all, row{"More", strings.TrimSpace(l.Label + " " + l.URL)})
	}
	return slices.DeleteFunc(all, func(r row) bool { return r.Value == "" })
}

// command is a line that decides when it is pasted. Ids need no quotes, and [grant.CheckURL] lets no
// address in that would.
func (l *Links) command(g grant.Grant, flag string) string {
	words := []string{"adjourn", "submit", "--url", "'" + l.url + "'", flag}
	if strings.HasPrefix(g.Session, "-") {
		words = append(words, "--")
	}
	return strings.Join(append(words, g.Session, g.Wait), " ")
}

// then says what happens at a deadline.
func then(d session.Deadline) string {
	if d.Escalate != nil {
		until := "others may decide too, for " + d.Escalate.After.String() + " more; after that "
		d.Escalate = nil
		return until + then(d)
	}
	switch d.Outcome {
	case session.ExpireDeny:
		return "it is denied"
	case session.ExpireDefault:
		if string(bytes.TrimSpace(d.Value)) == "true" {
			return "it is approved"
		}
		return "its default counts: " + string(d.Value)
	case session.ExpireFail:
		return "the task fails"
	case session.ExpireReask:
		return "it is asked again"
	}
	return string(d.Outcome)
}

// ended is the page of a wait that is over: who decided, how and when.
func ended(g grant.Grant, record journal.WaitRecord) view {
	if record.Answer != nil {
		v := decided(g, *record.Answer)
		v.Rows = append([]row{{"Tool", record.Wait.Tool}}, v.Rows...)
		return v
	}
	v := view{Title: "No longer waiting", Notice: "The session went on, or was stopped, without a decision.", Rows: []row{{"Tool", record.Wait.Tool}, {"Session", g.Session}}}
	if d := record.Wait.Deadline; d != nil && record.State == session.WaitOpen {
		v.Title, v.Notice = "Too late", "Its deadline passed at "+clock(d.At)+": "+then(*d)+"."
	}
	return v
}

// decided says what was decided, by whom, how and when.
func decided(g grant.Grant, a session.Answer) view {
	v, by := view{Title: "Denied"}, "Decided by"
	switch {
	case a.Kind == session.AnswerExpiry:
		v.Title, v.Notice = "Too late", "Nobody decided before its deadline: "+then(session.Deadline{Outcome: a.Outcome, Value: a.Result})+"."
		v.Rows = []row{{"Session", g.Session}, {"When", clock(a.When)}}
		return v
	case a.Kind == session.AnswerDismissal:
		v.Title, v.Notice, by = "Dismissed", "It was neither approved nor denied: nobody will decide it.", "Dismissed by"
	case a.Approved != nil && *a.Approved && a.EditedInput != nil:
		v.Title = "Approved with other arguments"
	case a.Approved != nil && *a.Approved:
		v.Title = "Approved"
	}
	v.Rows = []row{{"Session", g.Session}, {by, deciders(a)}, {"How", door(a.From)}, {"When", clock(a.When)}}
	if a.Reason != "" {
		v.Rows = append(v.Rows, row{"Reason", a.Reason})
	}
	return v
}

// deciders names who gave an answer, each with the person in whose place they did; of votes all who voted, and how.
func deciders(a session.Answer) string {
	if len(a.Votes) == 0 || a.Kind != session.AnswerApproval {
		return inPlace(a.Who, a.For)
	}
	said := make([]string, len(a.Votes))
	for i, v := range a.Votes {
		word := "no"
		if v.Approved {
			word = "yes"
		}
		said[i] = inPlace(v.Who, v.For) + " (" + word + ")"
	}
	return strings.Join(said, ", ")
}

func inPlace(who, of string) string {
	if of == "" {
		return who
	}
	return who + " for " + of
}

// door says in words by which way an answer came. Where from is not told to who holds a link.
func door(from string) string {
	word, _, _ := strings.Cut(from, " ")
	switch word {
	case "link":
		return "by a link, without signing in"
	case "slack":
		return "by a button in Slack"
	case "cli":
		return "on the command line of the machine that holds the data"
	case "http", "":
		return "over the API"
	}
	return "over the API, signed in"
}

func clock(at time.Time) string { return at.UTC().Format("2 January 2006, 15:04:05 UTC") }

// span is a time to go, in its two largest units.
func span(d time.Duration) string {
	switch d = max(d, 0).Truncate(time.Second); {
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

const (
	// Arguments up to so many bytes and lines are shown as they are; of longer ones so many lines of
	// their beginning and their end, with the whole behind them.
	shownBytes, shownLines = 2000, 40
	firstLines, lastLines  = 12, 4
	lineBytes              = 160
	// What is larger than this is not indented: deep values would grow without bounds.
	indentBytes, indentedBytes = 64 << 10, 512 << 10
)

// arguments returns the arguments as text.
func arguments(raw json.RawMessage) (asked, sum, whole string) {
	text := indented(raw)
	lines := strings.Split(text, "\n")
	if len(text) <= shownBytes && len(lines) <= shownLines {
		return text, "", ""
	}
	sum = fmt.Sprintf("%d bytes", len(raw))
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil {
		for i, name := range slices.Sorted(maps.Keys(fields)) {
			if i == firstLines {
				sum += fmt.Sprintf("; and %d more fields", len(fields)-i)
				break
			}
			sum += fmt.Sprintf("; %s: %d bytes", clip(name), len(fields[name]))
		}
	}
	if len(lines) > firstLines+lastLines {
		lines = slices.Concat(lines[:firstLines], []string{fmt.Sprintf("… %d lines left out here …", len(lines)-firstLines-lastLines)}, lines[len(lines)-lastLines:])
	}
	for i := range lines {
		lines[i] = clip(lines[i])
	}
	return strings.Join(lines, "\n"), sum, text
}

// clip shortens a line: its beginning and its end stay.
func clip(line string) string {
	if len(line) <= lineBytes {
		return line
	}
	const end = lineBytes / 4
	return strings.ToValidUTF8(line[:lineBytes-end], "") + " … " + strings.ToValidUTF8(line[len(line)-end:], "")
}

// indented is JSON for people, in which everything can be seen. It means the same.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	raw = unescaped(raw)
	if len(raw) > indentBytes || json.Indent(&b, raw, "", " ") != nil || b.Len() > indentedBytes {
		return string(visible.JSON(raw))
	}
	return string(visible.JSON(b.Bytes()))
}

var htmlEscapes = map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}

// unescaped is JSON in which <, > and & stand for themselves: Go writes them as escapes, which people
// read badly. The template escapes them for HTML.
func unescaped(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) || !bytes.Contains(raw, []byte(`\u00`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' { // escapes are in strings alone
			out = append(out, raw[i])
			continue
		}
		escape := string(bytes.ToLower(raw[i:min(i+6, len(raw))]))
		if plain, known := htmlEscapes[escape]; known {
			out = append(out, plain)
			i += len(escape) - 1
			continue
		}
		out = append(out, raw[i], raw[i+1]) // valid JSON: something follows
		i++
	}
	return out
}

// style is all the styling there is; the policy names it by its hash.
const style = `:root{color-scheme:light dark}body{font:1.0625rem/1.45 system-ui,sans-serif;max-width:40rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}h1{font-size:1.35rem;margin:.5rem 0}pre{font:.9375rem/1.4 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid #8888;border-radius:.4rem;padding:.6rem;margin:.6rem 0}dl{margin:.8rem 0}dt{font-size:.875rem;opacity:.75}dd{margin:0 0 .5rem;white-space:pre-wrap}summary{padding:.6rem 0;cursor:pointer}.notice{border-left:.3rem solid #888;padding:.4rem .8rem}.claim{opacity:.85}label{display:block;margin:.8rem 0 .3rem}textarea,input{box-sizing:border-box;width:100%;font:inherit;padding:.5rem}.buttons{display:flex;gap:.8rem;margin:1rem 0}button{flex:1;min-height:3.25rem;font:inherit;font-weight:600;border-radius:.5rem;border:2px solid;background:none;color:inherit}`

var pageText = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>{{line .Title}}</title>
<style>` + style + `</style>
</head>
<body>
<main>
<h1>{{line .Title}}</h1>
{{with .Notice}}<p class="notice">{{text .}}</p>
{{end}}{{with .Sum}}<p>{{line .}}</p>
{{end}}{{with .Asked}}<pre>
{{text .}}</pre>
{{end}}{{with .Whole}}<details><summary>All arguments</summary><pre>
{{text .}}</pre></details>
{{end}}{{with .Claim}}<p class="claim">The agent says, and nobody has checked it:</p>
<pre class="claim">
{{text .}}</pre>
{{end}}{{if .Rows}}<dl>
{{range .Rows}}<dt>{{.Name}}</dt><dd>{{text .Value}}</dd>
{{end}}</dl>
{{end}}{{if or .Approve .Deny}}<form method="post" autocomplete="off">
<button disabled hidden></button>
<label for="reason">Reason (optional; the agent is told)</label>
<textarea id="reason" name="reason" rows="2" maxlength="500"></textarea>
{{with .Word}}<label for="word">The risk is high. To approve, type <b>{{line .}}</b> here</label>
<input id="word" name="word" type="text" autocapitalize="off" autocorrect="off" spellcheck="false">
{{end}}<div class="buttons">
{{if .Deny}}<button name="decision" value="deny">Deny</button>
{{end}}{{if .Approve}}<button name="decision" value="approve">Approve</button>
{{end}}</div>
</form>
{{end}}{{if .Commands}}<p>Decide on the command line, with your own token:</p>
{{range .Commands}}<pre>{{line .}}</pre>
{{end}}{{end}}{{with .SignIn}}<p><a href="{{.}}" rel="noreferrer">Sign in to decide</a></p>
{{end}}</main>
</body>
</html>
`

var compiled = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{"text": visible.Text, "line": visible.Line}).Parse(pageText)
})

// render writes a page. Its first button, which nobody sees, is what Enter in a field would press: nothing happens.
func render(v view) ([]byte, error) {
	t, err := compiled()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Headers are those of a page: nothing in it runs, frames it, remembers it or tells where it is.
func Headers(status int) map[string]string {
	sum := sha256.Sum256([]byte(style))
	headers := map[string]string{
		"Content-Type": "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		"Referrer-Policy":              "no-referrer",
		"Cache-Control":                "no-store",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"X-Robots-Tag":                 "noindex, nofollow",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	}
	if status == http.StatusServiceUnavailable {
		headers["Retry-After"] = "1"
	}
	return headers
}

// page is an answer with what a view shows.
func (l *Links) page(status int, v view) Page {
	html, err := l.render(v)
	return Page{Status: status, HTML: html, Err: err}
}
