package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

var (
	name     = tool.Question{ID: "name", Text: "Your name?"}
	color    = tool.Question{ID: "color", Text: "Which?", Choices: []session.Choice{{ID: "red"}, {ID: "blue", Label: "Blue"}}}
	toppings = tool.Question{ID: "toppings", Text: "Which?", Choices: color.Choices, Multi: true}
)

func replied(id string, selected []string, text string) session.Answer {
	a := session.Answer{Kind: session.AnswerReply, QuestionID: id, Selected: selected}
	if selected == nil {
		a.Text = &text
	}
	return a
}

func TestCall_Ask_without_an_answer(t *testing.T) {
	t.Parallel()
	c := tool.NewCall(tool.CallConfig{})
	expiry := &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny}
	q := color
	q.Expiry, q.Who = expiry, []string{"ops"}
	for range 2 {
		_, err := c.Ask(t.Context(), q)
		require.ErrorIs(t, err, tool.ErrWaiting)
		require.ErrorContains(t, err, `ask "color"`)
	}
	_, err := c.Ask(t.Context(), name)
	require.ErrorIs(t, err, tool.ErrWaiting)

	other := color
	other.Text = "Which other?"
	_, err = c.Ask(t.Context(), other)
	require.ErrorContains(t, err, "two questions of one call have the id")
	require.NotErrorIs(t, err, tool.ErrWaiting)

	require.Equal(t, []tool.Question{q, name}, c.Taken().Questions, "each once, in order")
}

func TestCall_Ask_with_answers(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for testName, c := range map[string]struct {
		question tool.Question
		replies  []session.Answer
		want     tool.Reply
		err      error
	}{
		"text":             {name, []session.Answer{replied("name", nil, "Ada")}, tool.Reply{Text: "Ada"}, nil},
		"empty_text":       {name, []session.Answer{replied("name", nil, "")}, tool.Reply{}, nil},
		"choice":           {color, []session.Answer{replied("color", []string{"red"}, "")}, tool.Reply{Selected: []string{"red"}}, nil},
		"multi":            {toppings, []session.Answer{replied("toppings", []string{"blue", "red"}, "")}, tool.Reply{Selected: []string{"blue", "red"}}, nil},
		"multi_none":       {toppings, []session.Answer{replied("toppings", []string{}, "")}, tool.Reply{}, nil},
		"the_newest":       {name, []session.Answer{replied("name", nil, "Ada"), replied("name", nil, "Bob")}, tool.Reply{Text: "Bob"}, nil},
		"default_text":     {name, []session.Answer{{Kind: session.AnswerExpiry, QuestionID: "name", Outcome: session.ExpireDefault, Text: text("x")}}, tool.Reply{Text: "x"}, nil},
		"default_selected": {color, []session.Answer{{Kind: session.AnswerExpiry, QuestionID: "color", Outcome: session.ExpireDefault, Selected: []string{"red"}}}, tool.Reply{Selected: []string{"red"}}, nil},
		"default_one_id":   {color, []session.Answer{{Kind: session.AnswerExpiry, QuestionID: "color", Outcome: session.ExpireDefault, Text: text("red")}}, tool.Reply{Selected: []string{"red"}}, nil},
		"default_raw":      {toppings, []session.Answer{{Kind: session.AnswerExpiry, QuestionID: "toppings", Outcome: session.ExpireDefault, Result: json.RawMessage(`["red"]`)}}, tool.Reply{Selected: []string{"red"}}, nil},
		"expired":          {name, []session.Answer{{Kind: session.AnswerExpiry, QuestionID: "name", Outcome: session.ExpireDeny}}, tool.Reply{}, tool.ErrExpired},
		"asked_again":      {name, []session.Answer{{Kind: session.AnswerExpiry, QuestionID: "name", Outcome: session.ExpireReask}}, tool.Reply{}, tool.ErrWaiting},

		"of_another_question": {name, []session.Answer{replied("color", nil, "Ada")}, tool.Reply{}, tool.ErrWaiting},
		"of_another_kind":     {name, []session.Answer{{Kind: session.AnswerApproval, QuestionID: "name", Text: text("yes")}}, tool.Reply{}, tool.ErrWaiting},
		"unknown_choice":      {color, []session.Answer{replied("color", []string{"green"}, "")}, tool.Reply{}, tool.ErrWaiting},
		"two_for_one":         {color, []session.Answer{replied("color", []string{"red", "blue"}, "")}, tool.Reply{}, tool.ErrWaiting},
		"none_for_one":        {color, []session.Answer{replied("color", []string{}, "")}, tool.Reply{}, tool.ErrWaiting},
		"one_twice":           {toppings, []session.Answer{replied("toppings", []string{"red", "red"}, "")}, tool.Reply{}, tool.ErrWaiting},
		"text_for_choice":     {color, []session.Answer{replied("color", nil, "red")}, tool.Reply{}, tool.ErrWaiting},
		"choice_for_text":     {name, []session.Answer{replied("name", []string{"red"}, "")}, tool.Reply{}, tool.ErrWaiting},
		"the_newest_misfits":  {color, []session.Answer{replied("color", []string{"red"}, ""), replied("color", []string{"green"}, "")}, tool.Reply{}, tool.ErrWaiting},
	} {
		t.Run(testName, func(t *testing.T) {
			t.Parallel()
			call := tool.NewCall(tool.CallConfig{Replies: c.replies, Asked: []session.Wait{{Question: c.question.Session()}}})
			got, err := call.Ask(t.Context(), c.question)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.err == tool.ErrWaiting, len(call.Taken().Questions) == 1) //nolint:errorlint // the table's own value
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want.Text, got.Text)
			require.ElementsMatch(t, c.want.Selected, got.Selected)
			require.Empty(t, call.Taken().Questions)
		})
	}
}

func TestCall_Ask_refuses(t *testing.T) {
	t.Parallel()
	for testName, c := range map[string]struct {
		change func(*tool.Question)
		want   string
	}{
		"no_id":             {func(q *tool.Question) { q.ID = "" }, "id is empty"},
		"no_text":           {func(q *tool.Question) { q.Text = "" }, "text is empty"},
		"multi_of_nothing":  {func(q *tool.Question) { q.Multi, q.Choices = true, nil }, "multi needs choices"},
		"id_is_no_text":     {func(q *tool.Question) { q.ID = "caf\xe9" }, `id "caf\xe9" is not UTF-8`},
		"choice_is_no_text": {func(q *tool.Question) { q.Choices = []session.Choice{{ID: "a"}, {ID: "caf\xe9.txt"}} }, `a choice's id "caf\xe9.txt" is not UTF-8`},
		"choice_without_id": {func(q *tool.Question) { q.Choices = []session.Choice{{Label: "x"}} }, "a choice has no id"},
		"choice_twice":      {func(q *tool.Question) { q.Choices = []session.Choice{{ID: "x"}, {ID: "x"}} }, `two choices have the id "x"`},
		"bad_expiry":        {func(q *tool.Question) { q.Expiry = &tool.Expiry{} }, "more than zero"},
		"default_misfits": {func(q *tool.Question) {
			q.Expiry = &tool.Expiry{After: 1, Outcome: session.ExpireDefault, Value: "green"}
		}, `the default "green" is no answer to it`},
	} {
		t.Run(testName, func(t *testing.T) {
			t.Parallel()
			q := color
			c.change(&q)
			call := tool.NewCall(tool.CallConfig{})
			_, err := call.Ask(t.Context(), q)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, tool.ErrWaiting)
			require.Empty(t, call.Taken().Questions)
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tool.NewCall(tool.CallConfig{}).Ask(ended, color)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCall_Ask_bounds_the_questions_of_a_call(t *testing.T) {
	t.Parallel()
	c := tool.NewCall(tool.CallConfig{})
	for i := range session.MaxWaits {
		_, err := c.Ask(t.Context(), tool.Question{ID: strconv.Itoa(i), Text: "?"})
		require.ErrorIs(t, err, tool.ErrWaiting)
	}
	_, err := c.Ask(t.Context(), name)
	require.ErrorContains(t, err, "at most 80 questions")
}

func TestQuestion_in_the_words_of_the_journal(t *testing.T) {
	t.Parallel()
	require.Equal(t, &session.Question{ID: "name", Kind: session.QuestionText, Text: "Your name?"}, name.Session())
	require.Equal(t, &session.Question{ID: "color", Kind: session.QuestionChoice, Text: "Which?", Choices: color.Choices}, color.Session())
	require.Equal(t, session.QuestionMultiChoice, toppings.Kind())
	require.True(t, color.Fits(replied("color", []string{"red"}, "")))
	require.False(t, color.Fits(replied("color", []string{"green"}, "")))
}

// TestCall_Ask_values: the tool takes a choice for its value, which is in no journal.
func TestCall_Ask_values(t *testing.T) {
	t.Parallel()
	question := tool.Question{ID: "plan", Text: "Which?", Multi: true, Choices: []tool.Choice{
		{ID: "small", Description: "Two machines", Value: 2}, {ID: "large", Value: 200}, {ID: "none"},
	}}
	call := tool.NewCall(tool.CallConfig{
		Replies: []session.Answer{replied("plan", []string{"none", "large"}, "")}, Asked: []session.Wait{{Question: question.Session()}},
	})
	reply, err := call.Ask(t.Context(), question)
	require.NoError(t, err)
	require.Equal(t, tool.Reply{Selected: []string{"none", "large"}, Values: []any{nil, 200}}, reply)

	require.Equal(t, []session.Choice{{ID: "small", Description: "Two machines"}, {ID: "large"}, {ID: "none"}}, question.Session().Choices)
	raw, err := json.Marshal(question.Choices)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "200")
}

// TestCall_Ask_for_what_was_shown: a reply counts for the question a person was
// shown. When anything of it has changed since, it is asked anew.
func TestCall_Ask_for_what_was_shown(t *testing.T) {
	t.Parallel()
	shown := tool.Question{
		ID: "confirm", Text: "Delete 3 files?", Who: []string{"ada", "bob"},
		Choices: []session.Choice{{ID: "yes", Label: "Yes, all 3"}, {ID: "no"}},
	}
	ask := func(q tool.Question, asked []session.Wait, tools ...string) (*tool.Call, error) {
		call := tool.NewCall(tool.CallConfig{Asked: asked, Who: tools, Replies: []session.Answer{
			{Wait: "w3-1", Kind: session.AnswerReply, QuestionID: "confirm", Selected: []string{"yes"}},
		}})
		_, err := call.Ask(t.Context(), q)
		return call, err
	}
	wait := func(q tool.Question, who ...string) []session.Wait {
		return []session.Wait{{ID: "w2-1", Kind: session.WaitApproval}, {ID: "w3-1", Kind: session.WaitQuestion, Question: q.Session(), Who: who}}
	}
	for name, c := range map[string]struct {
		change func(*tool.Question)
		counts bool
	}{
		"the same":         {func(*tool.Question) {}, true},
		"expiry":           {func(q *tool.Question) { q.Expiry = &tool.Expiry{After: time.Hour, Outcome: session.ExpireDeny} }, true},
		"who, reordered":   {func(q *tool.Question) { q.Who = []string{"bob", "ada"} }, true},
		"id":               {func(q *tool.Question) { q.ID = "other" }, false},
		"text":             {func(q *tool.Question) { q.Text = "Delete ALL 90000 files?" }, false},
		"value":            {func(q *tool.Question) { q.Choices[0].Value = 90000 }, true},
		"description":      {func(q *tool.Question) { q.Choices[0].Description = "For good" }, false},
		"label":            {func(q *tool.Question) { q.Choices[0].Label = "Yes, all 90000" }, false},
		"another choice":   {func(q *tool.Question) { q.Choices = append(q.Choices, session.Choice{ID: "all"}) }, false},
		"a choice less":    {func(q *tool.Question) { q.Choices = q.Choices[:1] }, false},
		"order of choices": {func(q *tool.Question) { q.Choices[0], q.Choices[1] = q.Choices[1], q.Choices[0] }, false},
		"multi":            {func(q *tool.Question) { q.Multi = true }, false},
		"who, fewer":       {func(q *tool.Question) { q.Who = q.Who[:1] }, false},
		"who, more":        {func(q *tool.Question) { q.Who = append(q.Who, "eve") }, false},
		"who, others":      {func(q *tool.Question) { q.Who = []string{"ada", "eve"} }, false},
		"who, everybody":   {func(q *tool.Question) { q.Who = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := shown
			q.Choices = append([]session.Choice{}, shown.Choices...)
			c.change(&q)
			call, err := ask(q, wait(shown, shown.Who...))
			if c.counts {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tool.ErrWaiting)
			require.Equal(t, []tool.Question{q}, call.Taken().Questions, "it is asked anew")
		})
	}

	open := shown
	open.Who = nil
	call, err := ask(open, wait(open, "ada"), "ada")
	require.NoError(t, err, "who may answer the tool's questions")
	require.Empty(t, call.Taken().Questions)
	call, err = ask(open, wait(open, "ada", "bob"), "ada")
	require.ErrorIs(t, err, tool.ErrWaiting)
	require.Equal(t, []string{"ada"}, call.Taken().Questions[0].Who)

	for name, asked := range map[string][]session.Wait{
		"nobody knows what was asked": nil, "another wait": {{ID: "w2-1", Question: shown.Session(), Who: shown.Who}}, "no question": {{ID: "w3-1", Who: shown.Who}},
	} {
		_, err = ask(shown, asked)
		require.ErrorIs(t, err, tool.ErrWaiting, name)
	}

	odd := tool.Question{ID: "confirm", Text: "Delete a\xff\xfe?", Choices: shown.Choices}
	asked := wait(odd)
	asked[1].Question.Text = "Delete a\ufffd\ufffd?" // as the journal gives it back
	_, err = ask(odd, asked)
	require.NoError(t, err)
}

// What was declared for a question that nobody answered counts for that question only.
func TestCall_Ask_expired_for_what_was_shown(t *testing.T) {
	t.Parallel()
	other := name
	other.Text = "Another name?"
	for _, a := range []session.Answer{{Outcome: session.ExpireDeny}, {Outcome: session.ExpireDefault, Result: json.RawMessage(`"x"`)}} {
		a.Wait, a.Kind, a.QuestionID = "w3-1", session.AnswerExpiry, "name"
		call := tool.NewCall(tool.CallConfig{Replies: []session.Answer{a}, Asked: []session.Wait{{ID: "w3-1", Question: name.Session()}}})
		_, err := call.Ask(t.Context(), other)
		require.ErrorIs(t, err, tool.ErrWaiting)
	}
}

// TestCall_Ask_ends: a question that is another one on every run is not asked for ever.
func TestCall_Ask_ends(t *testing.T) {
	t.Parallel()
	var asked []session.Wait
	var replies []session.Answer
	for run := range 11 {
		q := tool.Question{ID: "confirm", Text: fmt.Sprintf("It is %d o'clock. Go on?", run)}
		call := tool.NewCall(tool.CallConfig{Asked: asked, Replies: replies})
		_, err := call.Ask(t.Context(), q)
		if run == 10 {
			require.NotErrorIs(t, err, tool.ErrWaiting)
			require.ErrorContains(t, err, "another question 10 times")
			_, err = call.Ask(t.Context(), name)
			require.ErrorIs(t, err, tool.ErrWaiting, "others are asked")
			require.Equal(t, []tool.Question{name}, call.Taken().Questions)
			break
		}
		require.ErrorIs(t, err, tool.ErrWaiting)
		id := fmt.Sprintf("w%d-1", run+3)
		a := replied("confirm", nil, "yes")
		a.Wait = id
		asked, replies = append(asked, session.Wait{ID: id, Question: q.Session()}), append(replies, a)
	}

	same := tool.Question{ID: "confirm", Text: "Go on?"}
	asked = slices.Repeat([]session.Wait{{ID: "w3-1", Question: same.Session()}}, 20) // its deadline asks again each time
	_, err := tool.NewCall(tool.CallConfig{Asked: asked}).Ask(t.Context(), same)
	require.ErrorIs(t, err, tool.ErrWaiting)
}
