package tool_test

import (
	"context"
	"encoding/json"
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
	require.ErrorContains(t, err, "another question of this call has that id")
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
			call := tool.NewCall(tool.CallConfig{Replies: c.replies})
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
