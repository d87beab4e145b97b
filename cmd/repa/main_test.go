package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/testkit/backend"
)

// suite runs the tests and cleans up behind them.
type suite struct{ m *testing.M }

// Run implements testscript.TestingM.
func (s suite) Run() int {
	code := s.m.Run()
	if err := backend.RemoveBuild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestMain makes this test binary the program itself when it is called by the program's name, as scripts do.
func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"repa": func() {
		t := &terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr, lang: messages.Choose(os.Getenv), getenv: os.Getenv}
		os.Exit(t.main(context.Background(), os.Args[1:]))
	}})
}
