// Command scale computes what each part of the bundle does at 10³, 10⁵ and 10⁷
// sessions a day; its tests simulate such a day.
package main

import (
	"fmt"
	"os"
)

func main() {
	n, err := needs()
	if err == nil {
		err = write(os.Stdout, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}
