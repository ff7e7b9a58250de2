// Command scale computes what each part of the bundle does at 10³, 10⁵ and 10⁷
// sessions a day; its tests simulate such a day.
package main

import (
	"fmt"
	"os"
)

func main() {
	moves, err := readMoves()
	if err == nil {
		err = write(os.Stdout, needs(moves))
	}
	if err == nil {
		err = writeMoves(os.Stdout, moves)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}
