package session

// Preview is what a tool shows people of a call before they decide on it, beside its arguments. The tool
// makes it in Go, from the arguments that its function gets, so that every door shows the same.
type Preview struct {
	// Title says in a line what the call does.
	Title string `json:"title,omitempty"`
	// Risk of it; empty says nothing about that.
	Risk Risk `json:"risk,omitempty"`
	// Money that it moves.
	Money *Money `json:"money,omitempty"`
	// Diff is what it changes in a text.
	Diff *Diff `json:"diff,omitempty"`
	// Links to more, http or https.
	Links []Link `json:"links,omitempty"`
	// Failed says why there is no preview, where the tool could not make one. The risk is then high.
	Failed string `json:"failed,omitempty"`
}

// Risk says how much a person should mind a call.
type Risk string

// The risks.
const (
	RiskLow    Risk = "low"
	RiskMedium Risk = "medium"
	RiskHigh   Risk = "high"
)

// Diff is a text before and after a call.
type Diff struct {
	// Name of the text: a path, a title.
	Name   string `json:"name,omitempty"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Cut says that the texts are longer than this.
	Cut bool `json:"cut,omitempty"`
}

// Link leads to more about a call.
type Link struct {
	Label string `json:"label,omitempty"`
	URL   string `json:"url"`
}

// Money is an amount as decimal text, as in "12.50", and the three letters of its currency.
type Money struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}
