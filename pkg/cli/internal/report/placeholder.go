package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Words that stand in a printed command for what only a person knows, or a client.
// Pasted as they stand they are refused with [Replace]: a guess would count for good.
const (
	WordResult  = "JSON"    // submit --result
	WordAnswer  = "ANSWER"  // submit --reply
	WordChoice  = "CHOICE"  // submit --select
	WordVerdict = "VERDICT" // submit --verdict
	WordMessage = "MESSAGE" // resume, and run of a next turn
	WordSession = "NEW-ID"  // run of another session
	WordEntry   = "ENTRY"   // resume --from-checkpoint
	WordNumber  = "NUMBER"  // retry --limit
)

// Replace says of a word that was left as it stands what belongs in its place.
func Replace(word, put string) string { return word + " is a word to replace: put " + put }

// LeftAsItStands returns what to put in the place of the word that an answer to a
// question still has; "" when it has none. A choice that is called so is a choice.
func LeftAsItStands(w client.Wait, a client.SubmitRequest) string {
	left := a.Text != nil && *a.Text == WordAnswer
	q := w.Question
	switch {
	case left && q != nil:
		return Replace(WordAnswer, "the answer there: "+screen.Short(q.Text, 200))
	case left:
		return Replace(WordAnswer, "the answer there")
	case slices.Contains(a.Selected, WordChoice) && q != nil && !isChoice(q, WordChoice):
		put := "one of these there: " + choices(q)
		if q.Kind == session.QuestionMultiChoice {
			put += " (" + ofSeveral + ")"
		}
		return Replace(WordChoice, put)
	}
	return ""
}

// ofSeveral says how a question of which several choices count is answered by a command.
const ofSeveral = "several: repeat --select; none: --select ''"

func isChoice(q *session.Question, id string) bool {
	return slices.ContainsFunc(q.Choices, func(choice session.Choice) bool { return choice.ID == id })
}

// choices are the ids that an answer may have, as a shell reads them; one that hides
// something is left to the screen that shows the question.
func choices(q *session.Question) string {
	const most = 20
	var ids []string
	for _, choice := range q.Choices {
		if screen.CleanLine(choice.ID) == choice.ID {
			ids = append(ids, place.Quote(choice.ID))
		}
	}
	if len(ids) > most {
		ids = append(ids[:most], fmt.Sprintf("%d more", len(ids)-most))
	}
	return strings.Join(ids, ", ")
}
