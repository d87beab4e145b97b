// Command reftree writes the reference tree of package reftree, for measuring programs beside one another.
//
//	go run ./testkit/cmd/reftree [-seed 1] [-scale 1] DIR
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/repa-app/repa/testkit/reftree"
)

func main() {
	seed := flag.Uint64("seed", 1, "another seed makes another tree of the same kind")
	scale := flag.Float64("scale", 1, "part of the whole, which is about 22,000 files and 1 GB")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: reftree [-seed N] [-scale PART] DIR")
		os.Exit(2)
	}
	if err := reftree.Write(flag.Arg(0), *seed, *scale); err != nil {
		fmt.Fprintln(os.Stderr, "reftree:", err)
		os.Exit(1)
	}
}
