// Command reftree writes the reference tree to a folder, so that other programs can be measured on it.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/repa-app/repa/testkit/reftree"
)

func main() {
	seed := flag.Uint64("seed", 1, "the tree is made from this number")
	scale := flag.Float64("scale", 1, "1 is the whole tree, 0.1 a tenth of it")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: reftree [-seed N] [-scale X] folder")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || *scale <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := reftree.Write(flag.Arg(0), *seed, *scale); err != nil {
		fmt.Fprintf(os.Stderr, "reftree: write the tree to %s: %v\n", flag.Arg(0), err)
		os.Exit(1)
	}
}
