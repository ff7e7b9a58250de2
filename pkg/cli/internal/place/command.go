package place

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/adjourn/adjourn/pkg/app"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$`)

// Plain reports whether a shell, and a person, reads a word as it is written.
func Plain(word string) bool { return plainWord.MatchString(word) }

// Quote returns a word as a POSIX shell has to read it.
func Quote(word string) string {
	if Plain(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Command returns a command line that works when pasted: the program as it was
// called, --url or --data when the default would lead elsewhere, then the words.
func (p *Place) Command(words ...string) string {
	all := []string{Quote(p.Program)}
	for _, word := range p.ProgramArgs {
		all = append(all, Quote(word))
	}
	for _, word := range p.whereFlags() {
		all = append(all, Quote(word))
	}
	for _, word := range words {
		all = append(all, Quote(word))
	}
	return strings.Join(all, " ")
}

// Target returns the words that name a session: behind -- if it looks like a flag.
func Target(verb, id string, words ...string) []string {
	if strings.HasPrefix(id, "-") {
		return append(append([]string{verb}, words...), "--", id)
	}
	return append([]string{verb, id}, words...)
}

// TargetWait returns the words that name a wait of a session, in the same way.
func TargetWait(verb, id, wait string, words ...string) []string {
	if strings.HasPrefix(id, "-") {
		return append(append([]string{verb}, words...), "--", id, wait)
	}
	return append([]string{verb, id, wait}, words...)
}

// whereFlags returns the flags that lead a printed command to the same place, also
// in another folder and another shell. A token is never among them.
func (p *Place) whereFlags() []string {
	if !p.Remote() {
		return p.dataFlags()
	}
	flags := []string{"--url", p.Server()}
	if path := p.tokenFile; path != "" {
		flags = append(flags, "--token-file", Absolute(path))
	}
	if p.plainHTTP {
		flags = append(flags, "--allow-plain-http")
	}
	return flags
}

func (p *Place) dataFlags() []string {
	path := p.DataPath()
	standard := filepath.Clean(path) == filepath.FromSlash(app.DefaultData) && p.Env("ADJOURN_DATA") == "" && p.Env("ADJOURN_URL") == ""
	if standard {
		return nil
	}
	return []string{"--data", Absolute(path)}
}

// Absolute returns the path of a file as it is read from any folder.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// ServeHint is the command that starts a server on this machine.
func (p *Place) ServeHint() string { return p.Called("dev") }

// Called returns words behind those the program was called by, and leads to no place.
func (p *Place) Called(words ...string) string {
	all := []string{Quote(p.Program)}
	for _, word := range append(append([]string{}, p.ProgramArgs...), words...) {
		all = append(all, Quote(word))
	}
	return strings.Join(all, " ")
}
