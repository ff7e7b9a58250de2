// Typecheck type-checks a module, its tests too, as the compiler for another system would, and
// its dependencies with it, from source: nothing is compiled, which takes a tenth of the time of
// go vet for that system.
//
//	go run ./typecheck -C DIR SYSTEM…
//
// A system is one of GOOS, like darwin.
package main

import (
	"flag"
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("C", ".", "folder of the module")
	flag.Parse()
	code := 0
	for _, system := range flag.Args() {
		loaded, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
				packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
			Dir: *dir, Tests: true, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		}, "./...")
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", system, err)
			os.Exit(1)
		}
		if packages.PrintErrors(loaded) > 0 {
			code = 1
		}
		fmt.Printf("%s: %d packages\n", system, len(loaded))
	}
	os.Exit(code)
}
